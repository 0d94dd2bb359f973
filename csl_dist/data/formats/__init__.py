"""Formats of label files, one module each: from bytes to a label document that can be edited."""

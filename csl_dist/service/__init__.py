"""Audits over HTTP, and the page on which people review what they found."""

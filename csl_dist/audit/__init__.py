"""What a run found: read it, correct its labels, see how far it is."""

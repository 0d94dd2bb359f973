"""Tables for the terminal, a module for each subject."""

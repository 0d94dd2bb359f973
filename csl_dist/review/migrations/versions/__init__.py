"""One module for each change of the schema; what was released is never changed again."""

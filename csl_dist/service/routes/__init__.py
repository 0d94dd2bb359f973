"""HTTP routes, one module a purpose; `ROUTES` is what the application serves."""

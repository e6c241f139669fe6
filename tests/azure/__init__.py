"""Azure's own clients, unmodified, against a running service."""

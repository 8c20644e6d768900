"""How fast the admin is on a full table: `make bench-admin` fills one and asks for every page."""

"""Template tags for the admin's pages; Django finds them here whether it is installed or not."""

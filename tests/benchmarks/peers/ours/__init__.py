"""The Django app with this queue's own handlers for the peers' work."""

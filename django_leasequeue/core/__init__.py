"""The protocol: the only writer of status, attempts, crashes, claims and lease columns."""

"""Tests with real worker processes and real signals, on the database of DATABASE_URL."""

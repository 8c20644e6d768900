"""The protocol on whichever database `DATABASE_URL` names: one conformance suite for all."""

"""The doctor: what could be wrong with the queue in this project, on this server, with this data.

diagnoses.py lists everything that is looked at; docs/checks.md says what to do about each finding.
"""

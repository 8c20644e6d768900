"""The kill storm: whatever dies, freezes or lies, nothing is lost and no fenced effect doubled.

`make chaos` runs it, `tests/process/test_storm.py` a short one. An app of the storm's own project,
for its handlers.
"""

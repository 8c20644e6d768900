"""What runs before and around pytest: interpreters, packages, virtual environments, servers.

Standard library only, and Python 3.9 is enough: nothing is installed yet when this starts.
"""

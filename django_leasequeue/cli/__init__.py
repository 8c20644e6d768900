"""The sub-commands of `manage.py leasequeue`, one module each; table.py lists them."""

"""The commands: `runworker`, `leasequeue`."""

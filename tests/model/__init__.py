"""The queue beside a model of it: random histories of several workers and an operator."""

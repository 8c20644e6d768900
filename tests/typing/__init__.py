"""The public API as type checkers see it: mypy and pyright read these modules, nothing runs them.

A `type: ignore` here says that a mistake is found: were it not, the comment would be one too many.
"""

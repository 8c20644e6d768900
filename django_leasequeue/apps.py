"""The Django app: discovers every app's `jobs.py` once the models are loaded."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class LeaseQueueConfig(AppConfig):
    """Registers handlers and system checks at start-up."""

    name = "django_leasequeue"
    label = "leasequeue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import `jobs.py` of every installed app, and the system checks."""
        from django_leasequeue import checks  # noqa: F401  (registers itself)

        autodiscover_modules("jobs")

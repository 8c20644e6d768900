"""The Django app: discovers every app's `jobs.py` once the models are loaded."""

from __future__ import annotations

from collections.abc import Mapping

from django.apps import AppConfig
from django.conf import settings
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class LeaseQueueConfig(AppConfig):
    """Registers handlers and system checks at start-up."""

    name = "django_leasequeue"
    label = "leasequeue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import `jobs.py` of every installed app and the system checks, and read `JOBS`.

        Raises ImproperlyConfigured for a name that is declared twice, and whatever a jobs module
        raises at its import: nothing starts that does not know its job types.
        """
        from django_leasequeue import checks  # noqa: F401  (registers itself)
        from django_leasequeue.manifest import declare_jobs
        from django_leasequeue.registry import registry

        autodiscover_modules("jobs")
        if getattr(settings, "TASKS", None):  # Django 6.0 has a default, 5.2 needs the backport
            from django_leasequeue.backend.discovery import discover

            discover()
        # As it stands: what else is wrong with the settings is for the system check to say.
        given = getattr(settings, "LEASEQUEUE", {})
        if isinstance(given, Mapping) and given.get("JOBS"):
            declare_jobs(given["JOBS"], registry)

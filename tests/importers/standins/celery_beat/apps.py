from django.apps import AppConfig


class StandIn(AppConfig):
    name = "tests.importers.standins.celery_beat"
    label = "django_celery_beat"

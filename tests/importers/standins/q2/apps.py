from django.apps import AppConfig


class StandIn(AppConfig):
    name = "tests.importers.standins.q2"
    label = "django_q"

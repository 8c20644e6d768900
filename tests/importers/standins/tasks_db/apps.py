from django.apps import AppConfig


class StandIn(AppConfig):
    name = "tests.importers.standins.tasks_db"
    label = "django_tasks_database"

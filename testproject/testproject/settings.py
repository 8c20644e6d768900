"""Settings of the reports project, from the environment; without any it runs on an SQLite file."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import django

from testproject.database import database_from_environment
from testproject.environment import flag, seconds, words

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = flag("DJANGO_DEBUG", default=False)
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or "for development and tests only, never deploy"
ALLOWED_HOSTS = words("DJANGO_ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]")

USE_TZ = flag("DJANGO_USE_TZ", default=True)
TIME_ZONE = os.environ.get("DJANGO_TIME_ZONE") or "UTC"

DATABASES = {"default": database_from_environment(os.environ, BASE_DIR / "db.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LEASEQUEUE = {
    "DATABASE": "default",
    "LEASE": seconds("LEASEQUEUE_LEASE", default=60),
    # Tests of expiry set it lower; the database's own waits must stay well below the lease.
    "MIN_LEASE": seconds("LEASEQUEUE_MIN_LEASE", default=5),
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_leasequeue",
    "reports",
]
if django.VERSION < (6, 0) and find_spec("django_tasks"):
    INSTALLED_APPS.append("django_tasks")
if django.VERSION >= (6, 0) or "django_tasks" in INSTALLED_APPS:
    TASKS = {
        "default": {"BACKEND": "django_leasequeue.backend.LeaseQueueBackend", "QUEUES": []},
    }
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "testproject.urls"
WSGI_APPLICATION = "testproject.wsgi.application"
STATIC_URL = "static/"

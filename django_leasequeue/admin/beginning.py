"""A bulk run begun by an operator: the entry that says why comes before the first job changes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.pages import url_of
from django_leasequeue.conf import get_conf
from django_leasequeue.core.bulk import RunExists, start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.bulk_step import step
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun

__all__ = ["STEP_SECONDS", "already", "begin", "carries", "to_run"]

#: How long one request works on a run.
STEP_SECONDS = 1.0
#: In the session: the run whose page, as it is shown next, carries it on.
_CARRIES = "leasequeue_carries"


def begin(
    page: OperatorAdmin[Any],
    request: HttpRequest,
    operation: str,
    chosen: JobFilter,
    options: Options,
    token: str,
    reason: str,
) -> HttpResponse:
    """Start a run and work on it for a moment, unless this token has one; lead to its page."""
    using, by = get_conf().DATABASE, request.user.get_username()
    try:
        run = start(operation, chosen, options, by=by, token=token, using=using)
    except RunExists as error:
        return _not_again(page, request, error.run)
    except LeaseQueueError as error:
        raise Http404(str(error)) from None
    page.log(request, [run], f"Started: {reason}")
    step(connections[using], run.pk, seconds=STEP_SECONDS)
    return to_run(page, request, run, carries=True)


def already(page: OperatorAdmin[Any], request: HttpRequest, token: str) -> HttpResponse | None:
    """Lead to the run that was started with this token, if there is one."""
    runs = BulkRun.objects.using(get_conf().DATABASE).defer("filter")
    run = runs.filter(token=token).first()
    return None if run is None else _not_again(page, request, run)


def _not_again(page: OperatorAdmin[Any], request: HttpRequest, run: BulkRun) -> HttpResponse:
    told = _("Nothing was started: %s had confirmed the same, and this is that run.")
    messages.warning(request, told % (run.by or "-"))
    return to_run(page, request, run, carries=False)


def to_run(
    page: OperatorAdmin[Any], request: HttpRequest, run: BulkRun, *, carries: bool
) -> HttpResponse:
    """Lead to a run's page; where `carries`, that carries the run on when it is shown next.

    A site without such pages says what there is to know instead.
    """
    if page.admin_site.is_registered(BulkRun):
        if carries:
            request.session[_CARRIES] = run.pk
        return HttpResponseRedirect(url_of(page, "bulkrun_change", run.pk))
    run.refresh_from_db(using=get_conf().DATABASE, fields=["state", "changed"])
    told = gettext("Bulk run %(id)d: %(changed)d changed so far, %(state)s.")
    if run.state not in ("finished", "cancelled"):
        told += " " + gettext("This carries it on: manage.py leasequeue requeue --resume %(id)d")
    shown = {"id": run.pk, "changed": run.changed, "state": run.state}
    messages.info(request, told % shown)
    return HttpResponseRedirect(url_of(page, f"{page.opts.model_name}_changelist"))


def carries(request: HttpRequest, run: BulkRun) -> bool:
    """Tell, once, whether the run's page follows a POST that started it or carried it on.

    A page that is opened, or loaded again, only shows: looking must not change jobs.
    """
    if request.session.get(_CARRIES) != run.pk:
        return False
    del request.session[_CARRIES]
    return True

"""Mending a dead letter: its payload edited, compared, and requeued in one transaction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.changing import held, in_one
from django_leasequeue.admin.pages import page, url_of
from django_leasequeue.admin.payload_forms import PayloadForm, diff, indented, presented
from django_leasequeue.conf import get_conf
from django_leasequeue.core.operate import requeue
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.models import Job
from django_leasequeue.registry import registry

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

__all__ = ["PayloadEdit"]

_DONE = _("The job was requeued with its new payload.")
_CHANGED = _("The job has changed meanwhile: begin again.")
_LEFT = _("The job was not requeued: it must be dead or cancelled, its key free, and not locked.")


class PayloadEdit(OperatorAdmin[Job]):
    """One page in two steps: the text, then what it changes, and only then the requeue."""

    def payload_view(self, request: HttpRequest, job_id: int) -> HttpResponse:
        """Show the payload to edit; a valid new one with its diff; a confirmed one is written."""
        job = self._editable(request, job_id)
        payload, version = presented(job)
        initial = {"payload": indented(payload), "edited": _mark(job)}
        form = PayloadForm(request.POST or None, job=job, initial=initial)
        context: dict[str, Any] = {"job": job, "form": form, "signs": bool(get_conf().SIGNING_KEYS)}
        if version != job.payload_version:
            context["version"] = version
        if form.is_valid():
            new = form.cleaned_data["payload"]
            # What is written is what was compared, not what was typed after that.
            compared = _digest(indented(new))
            if form.cleaned_data["edited"] != _mark(job):
                form.add_error(None, _CHANGED)
            elif "confirm" in request.POST and request.POST.get("compared") == compared:
                return self._requeue(request, job, form.cleaned_data)
            else:
                context |= {"lines": diff(job.payload, new), "compared": compared}
        title = gettext("Edit the payload of %s") % job
        return page(self, request, "payload_edit.html", title, context)

    def may_edit_payload(self, request: HttpRequest, job: Job) -> bool:
        """Tell whether the user may edit this job's payload, and requeue it.

        That shows the payload, and where signing is on, it signs what was written.
        """
        actions = ["requeue"]
        if get_conf().SIGNING_KEYS:
            actions.append("sign")
        declaration = registry.get(job.job_type)
        rights = {"edit_payload"}
        if declaration is not None and declaration.sensitive:
            rights.add("view_payload")
        return all(self.may(request, action, Job) for action in actions) and all(
            request.user.has_perm(f"leasequeue.{right}") for right in rights
        )

    def _editable(self, request: HttpRequest, job_id: int) -> Job:
        if not self.has_view_permission(request):
            raise PermissionDenied
        using = get_conf().DATABASE
        try:
            job = Job.objects.using(using).filter(pk=job_id).first()
            indented(job and job.payload)
        except (ValueError, RecursionError):  # plain SQL can put in what Python cannot decode
            job = None
        if job is None:
            raise Http404(gettext("There is no such job, or none whose payload can be edited."))
        if not self.may_edit_payload(request, job):
            raise PermissionDenied
        return job

    def _requeue(self, request: HttpRequest, job: Job, data: dict[str, Any]) -> HttpResponse:
        pk = job.pk
        try:
            told = in_one(lambda: self._write(request, pk, data))
        except EnqueueError as error:
            messages.error(request, str(error))
            told = _LEFT
        level = messages.SUCCESS if told is _DONE else messages.WARNING
        messages.add_message(request, level, told)
        return HttpResponseRedirect(url_of(self, "job_change", pk))

    def _write(self, request: HttpRequest, pk: int, data: dict[str, Any]) -> _StrOrPromise:
        """Requeue the job if it still is what was edited: its row stays locked meanwhile."""
        job = held(pk, "status", "claims", "payload", "job_type")
        if job is None:
            return _LEFT
        if _mark(job) != data["edited"]:
            return _CHANGED
        if not requeue(pk, payload=data["payload"], using=get_conf().DATABASE):
            return _LEFT
        self.log(request, [job], f"Payload edited and requeued: {data['reason']}")
        return _DONE


def _mark(job: Job) -> str:
    """Return what tells one payload from another, without holding it."""
    return _digest(f"{job.status}\0{job.claims}\0{indented(job.payload)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

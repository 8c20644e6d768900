"""Orders come in, reports come out; both belong to a tenant, whose id compares exactly."""

from __future__ import annotations

from django.db import models

from django_leasequeue.fields import ExactCharField, UtcDateTimeField


class Order(models.Model):
    """One product that a tenant's customer bought."""

    tenant_id = ExactCharField(max_length=100)
    order_number = ExactCharField(max_length=40)
    product = ExactCharField(max_length=100)
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=10, decimal_places=2)
    ordered_at = UtcDateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "order_number"], name="reports_order_once")
        ]
        indexes = [models.Index(fields=["tenant_id", "ordered_at"], name="reports_order_month")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.order_number}"


class GeneratedReport(models.Model):
    """A tenant's finished month. The unique key refuses a second report from a repeated job."""

    idempotency_key = models.CharField(max_length=64, unique=True)
    tenant_id = ExactCharField(max_length=100)
    report_month = models.CharField(max_length=7)
    result_json = models.JSONField()
    created_at = UtcDateTimeField(auto_now_add=True)

    class Meta:
        db_table = "generated_reports"

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.report_month}"

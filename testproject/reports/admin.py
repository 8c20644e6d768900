"""Orders and reports to look at; both are written by programs."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from reports.models import GeneratedReport, Order


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # no [] at run time
    """Shows rows and changes none."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    """The orders."""

    list_display = ("tenant_id", "order_number", "product", "quantity", "unit_price", "ordered_at")
    list_filter = ("tenant_id",)
    search_fields = ("order_number", "product")


@admin.register(GeneratedReport)
class GeneratedReportAdmin(ReadOnlyAdmin):
    """The reports, with their figures as JSON."""

    list_display = ("tenant_id", "report_month", "created_at")
    list_filter = ("tenant_id", "report_month")

"""A Django shop behind a waiting room, as a user of the guard would write it."""

from __future__ import annotations

import django
from daegi_guard import Guard, WsgiGuard, entry_of
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path


def hello(request: HttpRequest, item: str = "") -> HttpResponse:
    return HttpResponse(f"hello {entry_of(request).user_id}")


def order(request: HttpRequest, status: int) -> HttpResponse:
    return HttpResponse(f"ordered by {entry_of(request).user_id}", status=status)


def open_to_all(request: HttpRequest) -> HttpResponse:
    return HttpResponse("open to all")


urlpatterns = [
    path("checkout", hello),
    path("items/<str:item>", hello),
    path("strict", hello),
    path("orders/<int:status>", order),
    path("open", open_to_all),
]


def create_app(guard: Guard, online: Guard) -> WsgiGuard:
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="of-this-test")
    django.setup()
    app = WsgiGuard(get_wsgi_application(), guard, item="concert", prefixes=["/checkout"])
    app = WsgiGuard(app, guard, item=lambda environ: environ["PATH_INFO"].removeprefix("/items/"), prefixes=["/items"])
    app = WsgiGuard(app, online, item="concert", prefixes=["/strict"])
    return WsgiGuard(app, guard, item="concert", prefixes=["/orders"], complete_on_success=True)

"""The sites of the installation over the API, as somebody sees them who gives a host its site."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from experiments.models import Host, Member, Worker
from experiments.registry.hosts.sites import add_site
from tests.experiments.api.conftest import ApiClient
from tests.experiments.conftest import ready_host


def test_a_member_sees_where_hosts_may_be_whether_somebody_works_there_and_no_hosts_of_other_teams(
    api: ApiClient, admin: Member, other_admin: Member
) -> None:
    assert api.get("/sites").json() == []
    oslo, berlin = add_site("oslo", description="Lab in Oslo"), add_site("berlin", keys_stay=True)
    moments = {"started_at": Now() - timedelta(hours=2), "seen_at": Now()}
    Worker.objects.create(name="a", process="a:1", site="oslo", queues=["runs.oslo"], slots=4, **moments)
    Worker.objects.create(name="b", process="b:1", site="berlin", queues=["default.berlin"], slots=4, **moments)
    for member, name, site in ((admin, "one", berlin), (other_admin, "theirs", oslo), (other_admin, "other", berlin)):
        Host.objects.filter(pk=ready_host(member, name).pk).update(site=site)

    found = api.get("/sites").json()

    assert found == [
        {"name": "berlin", "description": "", "keys_stay": True, "has_worker": False, "hosts": 1},
        {"name": "oslo", "description": "Lab in Oslo", "keys_stay": False, "has_worker": True, "hosts": 0},
    ]

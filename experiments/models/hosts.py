"""Hosts, who may launch on them, and the hardware they showed over time."""

from __future__ import annotations

from django.db import models

from experiments.models.sites import Site
from experiments.models.teams import Member, Team, TeamOwnedQuerySet


class HardwareProfile(models.Model):
    """Content-addressed facts of a host: the same facts are the same profile."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="profiles")
    digest = models.CharField(max_length=64)
    facts = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "digest"], name="one_profile_per_content")]

    def __str__(self) -> str:
        known = [self.facts.get("cpu.architecture") or self.facts.get("kernel.machine")]
        known += [f"{self.facts['cpu.count']} CPUs"] if "cpu.count" in self.facts else []
        return ", ".join([*filter(None, known), self.digest[:12]])


class Machine(models.Model):
    """A machine of the installation: hosts that lead to it are used by one run at a time, whatever they are called.

    `boot_id` is of the boot that was seen last, "" while none was. `past_boots`: those before it. A past one that is
    seen again belongs to another machine than the newer one.
    """

    boot_id = models.CharField(max_length=64, blank=True)
    past_boots = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"machine {self.pk}"


class HostQuerySet(TeamOwnedQuerySet):
    def named(self) -> HostQuerySet:
        """Hosts for lists of what uses them: without the key, and without what only a host's own page shows."""
        own_page = ("differences", "last_restore", "last_check", "last_canaries")
        return self.defer("private_key", "public_key", "host_key", "offered_host_key", *own_page)

    def with_state(self) -> HostQuerySet:
        """Hosts with all that a list of them shows: no query per row."""
        return self.select_related("profile", "leased_by", "jump", "dirty_run", "site").order_by("name")


class Host(models.Model):
    """A machine that runs may use. Without a `site` it is at the central one.

    `offered_host_key`: the keys that it showed and nobody approved, one a line: of a new host, or of one that shows
    another than `host_key`.
    `last_check`: state (pending|ok|failed), message, hint, at of the connection, and `findings`, what a look at the
    host told (`agents.running.outfit`). `differences`: what is not as before on a dirty host, one plain sentence each,
    left by `dirty_run`. `last_restore`: how the last attempt to put it back went. Both are made by one function each:
    `inventory.check_state` and `quarantine.restore_state`.
    `last_canaries`: state, message, hint, at of the checks that somebody asked for. `canaries_until`: until then no run
    starts on it, as they are under way; None when they are not.
    `clock_ahead_s`: its clock against the database's when BenchHub looked last, None = not known.
    `stays_drained`: a person had taken the dirty host out of service, so it comes back drained. `machine`: the one that
    it leads to, once another host may lead there or it has shown itself. `place` is where it answers, in one spelling;
    `boot_id`, `installation` and `hardware` what it showed there last (`registry.hosts.machines`).
    """

    class State(models.TextChoices):
        NEW = "new", "host key not approved"
        READY = "ready"
        DIRTY = "dirty"
        UNREACHABLE = "unreachable"
        DRAINED = "drained"

    class Roles(models.TextChoices):
        SUT = "sut", "SUT"
        DRIVER = "driver"
        BOTH = "both"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="hosts")
    name = models.CharField(max_length=120)
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField(default=22)
    user = models.CharField(max_length=64)
    data_address = models.CharField(max_length=253, blank=True)
    jump = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.PROTECT, related_name="hosts")
    roles = models.CharField(max_length=8, choices=Roles.choices, default=Roles.BOTH)
    labels = models.JSONField(default=dict)
    link_templates = models.JSONField(default=list, blank=True)
    host_key = models.TextField(blank=True)
    offered_host_key = models.TextField(blank=True)
    private_key = models.BinaryField(default=bytes, editable=False)
    public_key = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.NEW)
    state_reason = models.TextField(blank=True)
    differences = models.JSONField(default=list)
    dirty_run = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    last_restore = models.JSONField(default=dict)
    stays_drained = models.BooleanField(default=False)
    profile = models.ForeignKey(HardwareProfile, null=True, blank=True, on_delete=models.PROTECT, related_name="hosts")
    leased_by = models.ForeignKey("Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="leases")
    last_seen_at = models.DateTimeField(null=True)
    last_check = models.JSONField(default=dict)
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.SET_NULL, related_name="hosts")
    place = models.TextField(blank=True)
    boot_id = models.CharField(max_length=64, blank=True)
    installation = models.CharField(max_length=64, blank=True)
    hardware = models.CharField(max_length=64, blank=True)
    clock_ahead_s = models.FloatField(null=True)
    last_canaries = models.JSONField(default=dict)
    canaries_until = models.DateTimeField(null=True)
    is_demo = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HostQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="host_name_once_per_team")]

    def __str__(self) -> str:
        return self.name

    @property
    def site_name(self) -> str:
        """The site whose workers reach the host; "" is the central one."""
        return self.site.name if self.site is not None else ""


class DriverSet(models.Model):
    """The hosts of a run beside its SUT: the driver hosts, and those of a system's further members.

    The same hosts are the same set; a single one is a set, too. `key`: the ids of the driver hosts in ascending order,
    which is the order of their parts in a run (driver, driver-2 and so on), then `;cache=12,database=12`, the members'
    roles in alphabetical order with their hosts.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=400, unique=True)
    hosts = models.ManyToManyField(Host, related_name="driver_sets")

    objects = TeamOwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return ", ".join(self.names)

    @property
    def in_order(self) -> tuple[Host, ...]:
        """The driver hosts in the order of their parts; no query where they were prefetched."""
        drivers = set(map(int, self.key.partition(";")[0].split(",")))
        found = sorted(self.hosts.all(), key=lambda host: int(host.pk))
        return tuple(host for host in found if host.pk in drivers)

    @property
    def member_ids(self) -> dict[str, int]:
        """Role of each further member of the system -> the id of its host."""
        pairs = (one.partition("=") for one in self.key.partition(";")[2].split(",") if one)
        return {role: int(pk) for role, _, pk in pairs}

    @property
    def members(self) -> dict[str, Host]:
        """Role -> host; no query where the hosts were prefetched."""
        ids = self.member_ids
        by_id = {host.pk: host for host in self.hosts.all()} if ids else {}
        return {role: by_id[pk] for role, pk in ids.items()}

    @property
    def everyone(self) -> tuple[Host, ...]:
        """All of its hosts, each once, the members' first."""
        return tuple(dict.fromkeys((*self.members.values(), *self.in_order)))

    @property
    def names(self) -> list[str]:
        return [host.name for host in self.in_order]


class HostGrant(models.Model):
    """Launching on a host is a grant of its own; admins need none."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="grants")
    member = models.ForeignKey(Member, on_delete=models.CASCADE, related_name="grants")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "member"], name="one_grant_per_host")]

    def __str__(self) -> str:
        return f"{self.member} on {self.host}"


class Reservation(models.Model):
    """Hosts that a person keeps for themselves until `until`: only their own runs start there meanwhile."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="reservations")
    member = models.ForeignKey(Member, on_delete=models.CASCADE, related_name="reservations")
    hosts = models.ManyToManyField(Host, related_name="reservations")
    reason = models.CharField(max_length=200, blank=True)
    starts_at = models.DateTimeField()
    until = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        # The dispatcher asks which of them hold now.
        indexes = [models.Index(fields=["until"], name="reservation_until")]

    def __str__(self) -> str:
        return f"reservation of {self.member} until {self.until:%Y-%m-%d %H:%M}"


class HostProfile(models.Model):
    """A host showed a profile from `first_seen_at` to `last_seen_at`."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="profile_history")
    profile = models.ForeignKey(HardwareProfile, on_delete=models.CASCADE, related_name="+")
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_seen_at"]

    def __str__(self) -> str:
        return f"{self.host} {self.profile}"

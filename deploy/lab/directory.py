# SPDX-License-Identifier: Apache-2.0
# The lab's index: a real slapd on the host `directory`, outside all sites.  docs/operations/directory.md
import json
import socket

PORT = 2135
CONFIG = "/etc/sekisho/index.json"
VALIDITY_S = 30

_PLACE = "/var/lib/sekisho/index"
# The set-up runs each time, as it would after a change of the sites.
START = (
    "/bin/sh", "-c",
    f"mkdir -p /run/slapd && /opt/sekisho/source/deploy/slapd/setup --config {CONFIG} {_PLACE} && "
    f"exec /usr/sbin/slapd -f {_PLACE}/slapd.conf -h 'ldap://0.0.0.0:{PORT}/ ldapi:///' -d 0",
)  # fmt: skip


def index_configuration(world, authority):
    """What deploy/slapd/setup reads."""
    return _json(
        {
            "certificate": "/etc/grid-security/hostcert.pem",
            "key": "/etc/grid-security/hostkey.pem",
            "ca_directory": "/etc/grid-security/certificates",
            "writers": {site.name: [authority.host_subject(f"{site.prefix}-dmz")] for site in world.sites.values()},
            "sweep_s": 1,
            "audit_log": "/var/log/sekisho/audit.ldif",
        }
    )


def site_configuration(world, site, qserver):
    """/etc/sekisho/directory.json of a site's DMZ host."""
    dmz = f"{site.prefix}-dmz"
    nodes = [host.name for host in site.hosts if host.role == "node"]
    return _json(
        {
            "site": site.name,
            "contact": f"{dmz}:2119",
            **qserver,
            "index": [{"url": f"ldap://{world.directory.name}:{PORT}"}],
            "validityS": VALIDITY_S,
            "about": {
                "description": f"{site.name} of the lab",
                "qualityLevel": "testing",
                "access": [f"dn:{world.users[user].subject}" for user in site.outside_map],
                "nodesReachOut": set(nodes) <= set(site.dial_out),
                "protocol": [f"relay {dmz}:7514"],
            },
        }
    )


def client_directory(world):
    """Of the users' sites.json."""
    return {"directory": {"url": f"ldap://{world.directory.name}:{PORT}"}} if world.directory else {}


def is_up():
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def _json(values):
    return json.dumps(values, indent=2) + "\n"

# SPDX-License-Identifier: Apache-2.0
# What the tests of the directory share: a lab of their own (others' jobs would change the counts), and the entries
# as Debian's ldapsearch shows them.
import base64
import os
import re

import support as t

URL = "ldap://directory:2135"
BASE = "GLUE2GroupID=grid,o=glue"
VALIDITY_S = 6  # at siteB, after shorten()


def own_lab(suffix):
    """From here on all of `support` is about a fresh lab, which the caller takes down."""
    os.environ["SEKISHO_LAB"] = f"{os.environ.get('SEKISHO_LAB', 'sekisho')}-{suffix}"
    t.lab("down")
    t.expect_ok(t.lab("up"))


def shorten():
    """From here on siteB's entries are true for a short time only."""
    t.expect_ok(t.on("b-dmz", "sed", "-i", f's/"validityS": [0-9]*/"validityS": {VALIDITY_S}/', "/etc/sekisho/directory.json"))
    t.expect_ok(t.lab("stop", "b-dmz", "directory"))
    t.expect_ok(t.lab("start", "b-dmz", "directory"))
    t.until(lambda: all(share["GLUE2EntityValidity"] == [str(VALIDITY_S)] for share in [shares()["siteB"], endpoint("siteB")]),
            "siteB's new validity", 10)  # fmt: skip


def parse_ldif(text):
    """[{"dn": [...], attribute: [value, ...]}]"""
    entries = []
    for block in text.replace("\n ", "").split("\n\n"):
        entry = {}
        for line in block.splitlines():
            match = re.fullmatch(r"([A-Za-z0-9;-]+):(:?) ?(.*)", line)
            if match:
                value = base64.b64decode(match[3]).decode() if match[2] else match[3]
                entry.setdefault(match[1], []).append(value)
        if entry:
            entries.append(entry)
    return entries


def search(filter_text="(objectClass=*)", *attributes, base="o=glue", url=URL, host="client"):
    result = t.on(host, "ldapsearch", "-x", "-LLL", "-o", "ldif-wrap=no", "-H", url, "-b", base, filter_text, *attributes)
    t.expect(result.code in (0, 32), result)  # 32: no such base
    return parse_ldif(result.out)


def site_of(entry):
    match = re.search(r"GLUE2DomainID=urn:ad:([^,]+),", entry["dn"][0] + ",")
    return match[1] if match else ""


def shares(**options):
    """{site: entry} of the shares for jobs without a queue."""
    found = search("(&(objectClass=GLUE2ComputingShare)(GLUE2EntityName=jobmanager-agent))", **options)
    return {site_of(entry): entry for entry in found}


def free(site, **options):
    entry = shares(**options).get(site)
    return int(entry["GLUE2ComputingShareFreeSlots"][0]) if entry else None


def endpoint(site):
    found = search("(objectClass=GLUE2ComputingEndpoint)", base=f"GLUE2DomainID=urn:ad:{site},{BASE}")
    return found[0] if found else None

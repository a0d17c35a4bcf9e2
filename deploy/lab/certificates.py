# SPDX-License-Identifier: Apache-2.0
# The lab's certificate authority, by the openssl command line: what a site's administrator would type.
# Hosts and services have EC keys, people have RSA keys as grid users do.
import concurrent.futures
import os
import shutil
import subprocess

from state import LabError, write_file

_ORGANISATION = "/O=Sekisho Lab"
_DAYS = "365"


class Authority:
    def __init__(self, directory):
        self._directory = directory
        self.subject = f"{_ORGANISATION}/CN=Sekisho Lab CA"

    def create(self, world):
        """The CA, its empty revocation list, and every certificate of the world."""
        os.makedirs(self._directory, mode=0o700)
        write_file(f"{self._directory}/ca.cnf", _CA_CONFIGURATION)
        write_file(f"{self._directory}/index.txt", "")
        write_file(f"{self._directory}/crlnumber", "01\n")
        self._openssl(
            "req", "-x509", "-new", *EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", _DAYS, "-sha256",
            "-subj", self.subject, "-config", "ca.cnf", "-extensions", "authority", "-set_serial", "1",
        )  # fmt: skip
        self._hash = self._openssl("x509", "-in", "ca.pem", "-noout", "-hash").strip()
        self._openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.pem", "-crldays", _DAYS)
        # Most of the time goes into keys: all at once.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            wanted = [pool.submit(self.issue, serial, *one) for serial, one in enumerate(self._all(world), 2)]
        for one in wanted:
            one.result()

    def _all(self, world):
        for user in world.users.values():
            yield f"user-{user.name}", user.subject, "", _RSA
        for host in world.hosts:
            if host.role in ("directory", "dmz", "head", "node"):
                yield host.name, self.host_subject(host.name), f"DNS:{host.name},IP:{host.address}", EC
        for site in world.sites.values():
            dmz = f"{site.prefix}-dmz"
            yield f"jobmanager-{dmz}", self.service_subject("jobmanager", dmz), f"DNS:{dmz}", EC

    def secret(self, name):
        """Random bytes, the same whenever the name is asked for."""
        path = f"{self._directory}/{name}.secret"
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.write(os.urandom(128))
        with open(path, "rb") as file:
            return file.read()

    def host_subject(self, host):
        return f"{_ORGANISATION}/CN={host}"

    def service_subject(self, service, host):
        return f"{_ORGANISATION}/CN={service}/{host}"

    def issue(self, serial, name, subject, alternative_names, key):
        """NAME.pem and NAME.key in the authority's directory."""
        section = "person" if not alternative_names else "machine"
        text = _CA_CONFIGURATION.replace("@names@", alternative_names or "DNS:unused")
        write_file(f"{self._directory}/{name}.cnf", text)
        # In a subject, a slash begins the next part; one that belongs to a name is escaped.
        escaped = subject.replace("jobmanager/", "jobmanager\\/")
        self._openssl(
            "req", "-x509", "-new", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-sha256",
            "-days", _DAYS, "-subj", escaped, "-CA", "ca.pem", "-CAkey", "ca.key",
            "-set_serial", str(serial), "-config", f"{name}.cnf", "-extensions", section,
        )  # fmt: skip

    def install(self, grid_security, host, world):
        """A host's /etc/grid-security."""
        trusted = f"{grid_security}/certificates"
        os.makedirs(trusted)
        shutil.copyfile(f"{self._directory}/ca.pem", f"{trusted}/{self._hash}.0")
        shutil.copyfile(f"{self._directory}/crl.pem", f"{trusted}/{self._hash}.r0")
        write_file(
            f"{trusted}/{self._hash}.signing_policy",
            f"access_id_CA X509 '{self.subject}'\npos_rights globus CA:sign\n"
            f"cond_subjects globus '\"{_ORGANISATION}/*\"'\n",
        )
        if host.role in ("directory", "dmz", "head", "node"):
            self.copy(host.name, f"{grid_security}/hostcert.pem", f"{grid_security}/hostkey.pem")
        if host.role == "dmz":
            self.copy(
                f"jobmanager-{host.name}", f"{grid_security}/jobmanagercert.pem",
                f"{grid_security}/jobmanagerkey.pem",
            )  # fmt: skip

    def install_user(self, user, home):
        """~/.globus of one user, in a home directory that is there already."""
        folder = f"{home}/.globus"
        os.makedirs(folder, exist_ok=True)
        self.copy(f"user-{user.name}", f"{folder}/usercert.pem", f"{folder}/userkey.pem")
        for path in (folder, f"{folder}/usercert.pem", f"{folder}/userkey.pem"):
            os.chown(path, user.uid, user.uid)

    def copy(self, name, certificate, key):
        shutil.copyfile(f"{self._directory}/{name}.pem", certificate)
        shutil.copyfile(f"{self._directory}/{name}.key", key)
        os.chmod(certificate, 0o644)
        os.chmod(key, 0o400)

    def _openssl(self, *words):
        done = subprocess.run(
            ["openssl", *words], cwd=self._directory, capture_output=True, text=True,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
        )  # fmt: skip
        if done.returncode != 0:
            raise LabError(f"openssl {words[0]}: {done.stderr.strip()}")
        return done.stdout


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")
_RSA = ("-newkey", "rsa:2048", "-noenc")

_CA_CONFIGURATION = """\
[req]
distinguished_name = req_dn
[req_dn]
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[machine]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature,keyEncipherment
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = @names@
authorityKeyIdentifier = keyid
[person]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature,keyEncipherment
extendedKeyUsage = clientAuth
authorityKeyIdentifier = keyid
[ca]
default_ca = lab
[lab]
database = index.txt
crlnumber = crlnumber
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_days = 365
"""

"""Discovery documents and requests for tokens, as bytes."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus

import pytest

from forewarn.wire import oauth
from forewarn.wire.oauth import FORM_TYPE, OauthRefusal, load_request

BASE = "https://localhost:8443"
CLOUD = {
    "name": "forewarn",
    "resourceManager": BASE,
    "suffixes": {},
    "authentication": {
        "loginEndpoint": f"{BASE}/adfs",
        "audiences": [BASE],
        "tenant": "common",
        "identityProvider": "AAD",
    },
}
RIGHT = b"grant_type=client_credentials&client_id=me&client_secret=s3cret"


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("version", ["2022-09-01", "2030-01-01-preview", "", "newest"])
def test_a_cloud_is_an_object_today(version: str) -> None:
    assert json.loads(oauth.endpoints(BASE, version)) == CLOUD


@pytest.mark.parametrize("version", ["2019-05-01", "2020-06-01", "2021-12-31"])
def test_a_cloud_was_one_of_a_list(version: str) -> None:
    assert json.loads(oauth.endpoints(BASE, version)) == [CLOUD]


def test_a_cloud_was_an_object_of_other_names_before() -> None:
    assert json.loads(oauth.endpoints(BASE, "2015-01-01")) == {
        "galleryEndpoint": BASE,
        "graphEndpoint": BASE,
        "portalEndpoint": BASE,
        "authentication": {"loginEndpoint": f"{BASE}/adfs", "audiences": [BASE]},
    }


def test_a_tenant_says_where_its_tokens_are_got() -> None:
    told = json.loads(oauth.openid_configuration(BASE, "adfs"))

    assert told["issuer"] == f"{BASE}/adfs"
    assert told["authorization_endpoint"] == f"{BASE}/adfs/oauth2/v2.0/authorize"
    assert told["token_endpoint"] == f"{BASE}/adfs/oauth2/v2.0/token"
    assert told["jwks_uri"] == f"{BASE}/adfs/discovery/v2.0/keys"
    assert json.loads(oauth.openid_configuration(BASE, "a?b"))["issuer"] == f"{BASE}/a%3Fb"


def test_a_request_as_the_clients_of_azure_send_it() -> None:
    body = (
        RIGHT + b"&client_info=1&scope=https%3A%2F%2Fmanagement.azure.com%2F.default&claims=%7B%7D"
    )

    asked = load_request(f"{FORM_TYPE}; charset=utf-8", "", body)

    assert (asked.client_id, asked.client_secret) == ("me", "s3cret")
    assert asked.resource == "https://management.azure.com"
    assert "s3cret" not in repr(asked)


def test_a_request_of_the_first_version_names_a_resource() -> None:
    assert load_request(FORM_TYPE, "", RIGHT + b"&resource=urn%3Ax").resource == "urn:x"
    assert load_request(FORM_TYPE, "", RIGHT).resource == ""


def test_a_client_may_show_itself_in_a_header() -> None:
    body = b"grant_type=client_credentials"

    asked = load_request(FORM_TYPE, basic("a%20b:s%3Acret"), body)
    again = load_request(FORM_TYPE, basic("me:s3cret"), body + b"&client_id=me")

    assert (asked.client_id, asked.client_secret) == ("a b", "s:cret")
    assert again.client_id == "me"


@pytest.mark.parametrize(
    ("content_type", "authorization", "body", "error"),
    [
        ("application/json", "", b"{}", "invalid_request"),
        ("", "", RIGHT, "invalid_request"),
        (FORM_TYPE, "", b"", "invalid_request"),
        (FORM_TYPE, "", b"client_id=me", "invalid_request"),
        (FORM_TYPE, "", b"x", "invalid_request"),
        (FORM_TYPE, "", b"\xff=1", "invalid_request"),
        (FORM_TYPE, "", b"a=%ff", "invalid_request"),
        (FORM_TYPE, "", RIGHT + b"&client_id=you", "invalid_request"),
        (FORM_TYPE, "", RIGHT + b"&x=" + b"x" * oauth.FORM_BYTES_MAX, "invalid_request"),
        (FORM_TYPE, "", b"&".join(b"a%d=1" % n for n in range(30)), "invalid_request"),
        (FORM_TYPE, basic("me:s3cret"), RIGHT, "invalid_request"),
        (FORM_TYPE, basic("me:x"), b"grant_type=x&client_id=you", "invalid_request"),
        (
            FORM_TYPE,
            "",
            RIGHT.replace(b"client_credentials", b"password"),
            "unsupported_grant_type",
        ),
    ],
)
def test_what_is_not_understood_is_refused_in_the_words_of_the_standard(
    content_type: str, authorization: str, body: bytes, error: str
) -> None:
    with pytest.raises(OauthRefusal) as refused:
        load_request(content_type, authorization, body)

    assert (refused.value.error, refused.value.status) == (error, HTTPStatus.BAD_REQUEST)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("authorization", "body"),
    [
        ("", b"grant_type=client_credentials&client_id=me"),
        ("", b"grant_type=client_credentials&client_secret=s3cret"),
        ("Bearer x", b"grant_type=client_credentials"),
        ("Basic !", b"grant_type=client_credentials"),
        (basic("no colon"), b"grant_type=client_credentials"),
        (basic(":"), b"grant_type=client_credentials"),
    ],
)
def test_a_client_that_does_not_show_itself_is_no_client(authorization: str, body: bytes) -> None:
    with pytest.raises(OauthRefusal) as refused:
        load_request(FORM_TYPE, authorization, body)

    assert (refused.value.error, refused.value.status) == (
        "invalid_client",
        HTTPStatus.UNAUTHORIZED,
    )


def test_a_token_is_told_as_azure_tells_it() -> None:
    told = json.loads(oauth.token_answer("t", "urn:x", lasts_seconds=3600, expires_on=5))

    assert told == {
        "token_type": "Bearer",
        "expires_in": 3600,
        "ext_expires_in": 3600,
        "expires_on": "5",
        "resource": "urn:x",
        "access_token": "t",
    }


def test_keys_and_faults_are_objects() -> None:
    assert json.loads(oauth.key_set(({"kid": "a"},))) == {"keys": [{"kid": "a"}]}
    assert json.loads(oauth.fault("x", "y")) == {"error": "x", "error_description": "y"}

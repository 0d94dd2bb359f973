"""What obstore's errors mean: whether to try again, and what to tell the user."""

import re

REASONS = (
    ("NoSuchBucket|bucket does not exist", "there is no such bucket; create it, or fix the URL"),
    (
        "latest/api/token|latest/meta-data|computeMetadata",
        "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, "
        "GOOGLE_APPLICATION_CREDENTIALS for gs://, or give the machine a role",
    ),
    (
        "ExpiredToken|TokenRefreshRequired|RequestExpired",
        "the credentials have expired; renew them and run again, what is done is kept",
    ),
    (
        "InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|401 Unauthorized",
        "the credentials are not accepted; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
        "AWS_SESSION_TOKEN",
    ),
    ("403 Forbidden", "the credentials are wrong, or do not allow it"),
    # The answer to a HEAD request has no text that would say more.
    ("400 Bad Request: *$", "the request was refused; have the credentials expired?"),
    ("redirect without LOCATION", "the bucket is in another region; set AWS_REGION"),
    (
        r"retries,.*status code: (?P<status>\d+ [A-Z][A-Za-z ]+)",
        "the server kept answering {status}; run again later, what is done is kept",
    ),
    (
        "error sending request|body error|error decoding response",
        "the server can't be reached, or gives no answer; check the network and AWS_ENDPOINT_URL, "
        "then run again, what is done is kept",
    ),
)
"""What obstore's messages mean, the first that fits."""


def is_cut(error: Exception) -> bool:
    """Whether an answer did not come, or not whole, and the request was not repeated."""
    text = _message(error)
    cut = re.search("error sending request|body error|error decoding response", text)
    return cut is not None and not re.search(r"after \d+ retries", text)


def _message(error: Exception) -> str:
    """What obstore says, without the page of its internals."""
    return str(error).split("\n\nDebug source")[0]


def reason_of(error: Exception) -> str:
    """One line of what went wrong."""
    text = _message(error)
    for pattern, sentence in REASONS:
        found = re.search(pattern, text)
        if found:
            return sentence.format(**found.groupdict())
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return text.split("\n")[0]

//! Every way a request can fail in the gateway: one enum, from which the answer and the metric label follow.

use http::StatusCode;

/// Why a request got no answer from the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// The head is malformed or could be read in two ways (RFC 9112 §3.2); says what is wrong.
    #[error("the request is malformed: {0}")]
    BadRequest(&'static str),
    /// The target names another authority than `Host`, or one that is not served here (RFC 9110 §15.5.20).
    #[error("the request is for another server")]
    Misdirected,
    /// No room guards this host and path.
    #[error("nothing is served under this address")]
    NotFound,
    /// The client stopped sending in the middle of its request.
    #[error("the request did not arrive in time")]
    ClientTooSlow,
    /// The client broke off its request; nobody reads the answer.
    #[error("the client went away")]
    ClientGone,
    /// The body is larger than [`super::Limits::request_body`].
    #[error("the request body is too large")]
    BodyTooLarge,
    /// Target and header fields are larger than [`super::Limits::head`].
    #[error("the request header is too large")]
    HeadTooLarge,
    /// The target alone is larger than [`super::Limits::target`].
    #[error("the address is too long")]
    TargetTooLong,
    /// `CONNECT` and `TRACE`: this is no forward proxy, and a trace would show the origin's headers.
    #[error("the method is not supported")]
    MethodRefused,
    /// Too much is going on already; worth another try soon.
    #[error("there is too much to do at once")]
    Busy,
    /// The shop has much to do, and can do without this.
    #[error("the shop does without this while it is busy")]
    Shed,
    /// The session has as many requests under way as the room's `max_parallel` lets it have.
    #[error("too many requests of one visit are under way at once")]
    TooParallel,
    /// The origin takes no connection.
    #[error("the shop cannot be reached")]
    OriginUnreachable,
    /// The origin broke off, or what it sent is not HTTP.
    #[error("the shop broke off or sent something unreadable")]
    OriginInvalid,
    /// The origin did not answer in time.
    #[error("the shop did not answer in time")]
    OriginTimeout,
    /// A route names an origin that the proxy was not given: a mistake in the wiring.
    #[error("no shop is configured for this address")]
    UnknownOrigin,
}

impl GatewayError {
    /// Status of the answer.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::ClientGone => StatusCode::BAD_REQUEST,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::ClientTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::MethodRefused => StatusCode::NOT_IMPLEMENTED,
            Self::Busy | Self::Shed => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooParallel => StatusCode::TOO_MANY_REQUESTS,
            Self::OriginUnreachable | Self::OriginInvalid | Self::UnknownOrigin => StatusCode::BAD_GATEWAY,
            Self::OriginTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The value of the metric label `error`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::BadRequest(_) => "bad_request",
            Self::Misdirected => "misdirected",
            Self::NotFound => "not_found",
            Self::ClientTooSlow => "client_too_slow",
            Self::ClientGone => "client_gone",
            Self::BodyTooLarge => "body_too_large",
            Self::HeadTooLarge => "head_too_large",
            Self::TargetTooLong => "target_too_long",
            Self::MethodRefused => "method_refused",
            Self::Busy => "busy",
            Self::Shed => "shed",
            Self::TooParallel => "too_parallel",
            Self::OriginUnreachable => "origin_unreachable",
            Self::OriginInvalid => "origin_invalid",
            Self::OriginTimeout => "origin_timeout",
            Self::UnknownOrigin => "unknown_origin",
        }
    }

    /// A headline for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadRequest(_) | Self::ClientGone | Self::MethodRefused => "This request cannot be answered",
            Self::Misdirected | Self::NotFound => "Nothing is here",
            Self::ClientTooSlow => "Your request took too long",
            Self::BodyTooLarge => "That is too much at once",
            Self::HeadTooLarge => "Your browser sends too much",
            Self::Busy | Self::Shed => "The shop is very busy",
            Self::TargetTooLong => "This address is too long",
            Self::TooParallel => "Too much at once from one visit",
            Self::OriginUnreachable | Self::OriginInvalid => "The shop does not answer",
            Self::OriginTimeout => "The shop takes too long",
            Self::UnknownOrigin => "This site is not set up yet",
        }
    }

    /// What the person or program that sent the request can do about it.
    pub const fn cure(self) -> &'static str {
        match self {
            Self::BadRequest(_) | Self::MethodRefused => "Send a well-formed request with a supported method.",
            Self::Misdirected | Self::NotFound | Self::TargetTooLong => "Check the address.",
            Self::ClientTooSlow | Self::ClientGone => "Check your connection and send the request again.",
            Self::BodyTooLarge => "Send less at once.",
            Self::HeadTooLarge => "Delete this site's cookies and try again.",
            Self::Busy | Self::Shed | Self::OriginUnreachable | Self::OriginInvalid | Self::OriginTimeout => {
                "Try again in a moment. Your place and your session are kept."
            }
            Self::TooParallel => {
                "Wait for a page to load before you open the next. A visit is for one person: those you share it with \
                 take its place from you."
            }
            Self::UnknownOrigin => "Tell the operator of this site.",
        }
    }

    /// After how many seconds another try may succeed (`Retry-After`).
    pub const fn retry_after(self) -> Option<u16> {
        match self {
            Self::Busy | Self::Shed => Some(5),
            Self::TooParallel => Some(2),
            _ => None,
        }
    }

    /// Whether it tells that the origin is not well: it failed, or has had as much as may wait for it for too long.
    pub const fn is_of_origin(self) -> bool {
        matches!(self, Self::Busy | Self::OriginUnreachable | Self::OriginInvalid | Self::OriginTimeout)
    }

    /// Whether the rest of the request may still be on its way, so that the connection cannot be used again.
    pub const fn leaves_request_unread(self) -> bool {
        matches!(
            self,
            Self::BadRequest(_)
                | Self::ClientTooSlow
                | Self::ClientGone
                | Self::BodyTooLarge
                | Self::HeadTooLarge
                | Self::TargetTooLong
                | Self::MethodRefused
        )
    }
}

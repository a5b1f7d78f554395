//! Queue and session tokens: JWT (RFC 7519) signed with HS256 (RFC 7518 §3.2), several keys live at once.

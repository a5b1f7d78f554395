//! Who may pass: the five steps of a request.

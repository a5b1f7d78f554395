//! What a command can complain about, in Redis' words.

/// A command's error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Another type is stored there.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// No such command here.
    #[error("ERR Unknown Redis command called from script")]
    UnknownCommand,
    /// Too few or too many arguments.
    #[error("ERR Wrong number of args calling Redis command from script")]
    Arity,
    /// Fields and values do not pair up.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Pairs(&'static str),
    /// Arguments that do not parse.
    #[error("ERR syntax error")]
    Syntax,
    /// LIMIT without BYSCORE.
    #[error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")]
    LimitWithoutScore,
    /// A place in a hash that is none.
    #[error("ERR invalid cursor")]
    Cursor,
    /// An argument or a stored string is no 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// A negative count.
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    /// A stored field is no 64-bit integer.
    #[error("ERR hash value is not an integer")]
    HashNotAnInteger,
    /// A sum beyond 64 bits.
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    /// The smallest integer has no opposite.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// A score that is no number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// A score range that is none.
    #[error("ERR min or max is not a float")]
    NotARange,
    /// Infinity minus infinity.
    #[error("ERR resulting score is not a number (NaN)")]
    NotANumber,
    /// An expiry that is no time.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpiry(&'static str),
    /// An option of EXPIRE, which takes none here.
    #[error("ERR Unsupported option {0}")]
    UnsupportedOption(String),
    /// ZADD with XX and NX.
    #[error("ERR XX and NX options at the same time are not compatible")]
    ExistsConflict,
    /// ZADD with options that exclude each other.
    #[error("ERR GT, LT, and/or NX options at the same time are not compatible")]
    CompareConflict,
    /// ZADD INCR with several members.
    #[error("ERR INCR option supports a single increment-element pair")]
    SingleIncrement,
}

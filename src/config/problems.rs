//! All that is wrong with a configuration, in one error.

use std::fmt;

/// The configuration cannot be used. One line per problem, each with its cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    /// One problem that hides all others, such as a file that is not TOML.
    pub fn only(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// The problems, in the order in which they were found.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => f.write_str(only),
            all => {
                write!(f, "{} problems:", all.len())?;
                all.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Collects problems, so that one run reports them all.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// Notes a problem unless `holds`.
    pub fn check(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.0.push(problem());
        }
    }

    /// The value, or nothing and a problem prefixed with `field`.
    pub fn take<T, E: fmt::Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(format!("{field}: {error}"))).ok()
    }

    /// The problems, where they are none.
    pub(super) fn into_list(self) -> Vec<String> {
        self.0
    }

    /// The problems as an error.
    pub(super) fn into_error(self) -> ConfigError {
        ConfigError { problems: self.0 }
    }

    /// `value` when nothing was wrong.
    ///
    /// # Errors
    /// Every problem noted so far.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, ConfigError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self.into_error()),
        }
    }
}

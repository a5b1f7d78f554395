//! Where secrets live: in the data directory (created on first start) or in the environment.
//!
//! A key file holds one key a line in hex, at least 32 bytes each. The first mints, the others still verify: to rotate,
//! put a new line on top and start again. `#` begins a comment.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::tokens::{Keyring, SigningKey};

/// Why there are no keys to sign with. Never shows any part of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read or made.
    #[error("cannot {action} the key file {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// One of the keys is broken.
    #[error(
        "{place} is not a key: write an even number of hex digits, at least {} of them (`stanchion keygen` makes one)",
        SigningKey::MIN_SECRET_BYTES * 2
    )]
    BadKey {
        /// Which one, such as `line 3 of keys.txt`.
        place: String,
    },
    /// There is no key at all.
    #[error("{place} holds no key: `stanchion keygen` makes one; a key file that is absent is created")]
    NoKey {
        /// Where one was looked for.
        place: String,
    },
}

/// The keys in `path`, and whether the file was created just now with a new random key (readable by its owner only).
///
/// Fresh keys mean that no token from before can be genuine.
pub fn load_or_create(path: &Path) -> Result<(Keyring, bool), KeysError> {
    let failed = |action| move |source| KeysError::Io { action, path: path.to_owned(), source };
    let absent = !fs::exists(path).map_err(failed("look for"))?;
    let created = absent && create(path, &first_file()).map_err(failed("create"))?;
    let text = fs::read_to_string(path).map_err(failed("read"))?;
    warn_if_shared(path);
    let lines = text.lines().enumerate().map(|(index, line)| {
        let key = line.split('#').next().unwrap_or_default();
        (format!("line {} of {}", index + 1, path.display()), key)
    });
    Ok((keyring(lines.filter(|(_, key)| !key.trim().is_empty()), &path.display().to_string())?, created))
}

/// The keys in the value of `STANCHION_KEYS`: hex, separated by commas, the minting one first.
pub fn from_env_value(value: &str) -> Result<Keyring, KeysError> {
    let keys = value.split(',').enumerate().map(|(index, key)| (format!("key {} of STANCHION_KEYS", index + 1), key));
    keyring(keys.filter(|_| !value.trim().is_empty()), "STANCHION_KEYS")
}

fn keyring<'a>(keys: impl Iterator<Item = (String, &'a str)>, whole: &str) -> Result<Keyring, KeysError> {
    let mut keys = keys.map(|(place, hex)| {
        decode_hex(hex.trim())
            .and_then(|secret| SigningKey::from_secret(&secret).ok())
            .ok_or(KeysError::BadKey { place })
    });
    let current = keys.next().ok_or_else(|| KeysError::NoKey { place: whole.to_owned() })??;
    Ok(Keyring::new(current, keys.collect::<Result<_, _>>()?))
}

fn first_file() -> String {
    format!("# Signs queue and session tokens. The first line signs, further lines still verify.\n{}\n", generate())
}

/// A new random secret in hex, as a key file holds it.
pub fn generate() -> String {
    let secret: [u8; SigningKey::MIN_SECRET_BYTES] = rand::random();
    secret.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// Writes a secret to a new file that only its owner can read. A file that is there is an error and stays as it is.
pub fn write_secret(path: &Path, secret: &str) -> Result<(), KeysError> {
    match create(path, &format!("{secret}\n")) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => Err(error),
    }
    .map_err(|source| KeysError::Io { action: "create", path: path.to_owned(), source })
}

/// Makes a private file with this text, whole or not at all. Returns `false` when another process made it first.
fn create(path: &Path, text: &str) -> io::Result<bool> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let draft = directory.join(format!(".keys-{:016x}", rand::random::<u64>()));
    let outcome = write_draft(&draft, text).and_then(|()| {
        // A link, unlike a rename, never replaces a file that is there, so two first starts agree on one key.
        match fs::hard_link(&draft, path) {
            Ok(()) => fs::File::open(directory)?.sync_all().map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    });
    let removed = fs::remove_file(&draft);
    outcome.and_then(|created| removed.map(|()| created))
}

fn write_draft(draft: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn warn_if_shared(path: &Path) {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        let path = path.display();
        tracing::warn!("others can read the key file {path} and forge tokens: run `chmod 600 {path}`");
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()));
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests;

//! A certificate chain and its key, as files in PEM.

use std::{
    io,
    path::{Path, PathBuf},
};

use ring::digest;
use rustls::{
    InconsistentKeys,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::validity;

/// Where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the certificate of this server first, then those that lead to an authority.
    pub certificate: PathBuf,
    /// PEM, without a passphrase.
    pub key: PathBuf,
}

/// Why a certificate cannot be used; the message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file is missing, or may not be read.
    #[error("cannot read {}: {source}{}", file.display(), cure(source))]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nothing of the kind is in the file.
    #[error("{} holds no {wanted} in PEM (-----BEGIN …-----){hint}", file.display())]
    Missing {
        /// Which.
        file: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// What seems to be there instead.
        hint: &'static str,
    },
    /// The two do not belong together.
    #[error("the key in {} is not that of the first certificate in {}: the server's own certificate comes first", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key: PathBuf,
    },
    /// One of them is of no use.
    #[error("the certificate in {} and its key cannot be used: {source}", certificate.display())]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": let the user that stanchion runs as read it",
        _ => "",
    }
}

/// Tells one state of the two files from another.
pub(super) type Digest = [u8; 32];

pub(super) struct Loaded {
    pub(super) key: CertifiedKey,
    pub(super) digest: Digest,
    pub(super) valid_until_s: Option<i64>,
}

impl CertificateFiles {
    pub(super) fn load(&self) -> Result<Loaded, CertificateError> {
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        self.build(&certificate, &key)
    }

    /// What the files hold now, unless they are as they were.
    pub(super) fn load_unless(&self, seen: Digest) -> (Digest, Option<Result<Loaded, CertificateError>>) {
        let read = read(&self.certificate).and_then(|certificate| Ok((certificate, read(&self.key)?)));
        let digest = match &read {
            Ok((certificate, key)) => digest_of(certificate, key),
            Err(error) => digest_of(error.to_string().as_bytes(), &[]),
        };
        if digest == seen {
            return (digest, None);
        }
        (digest, Some(read.and_then(|(certificate, key)| self.build(&certificate, &key))))
    }

    fn build(&self, certificate: &[u8], key: &[u8]) -> Result<Loaded, CertificateError> {
        let missing = |file: &Path, wanted, hint| CertificateError::Missing { file: file.to_owned(), wanted, hint };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| missing(&self.certificate, "certificate", ": it is damaged"))?;
        let Some(own) = chain.first() else { return Err(missing(&self.certificate, "certificate", "")) };
        let valid_until_s = validity::not_after(own);
        let private = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            let is_encrypted = key.windows(9).any(|word| word == b"ENCRYPTED");
            let hint =
                if is_encrypted { ": it is encrypted. Take the passphrase away with `openssl pkey`" } else { "" };
            missing(&self.key, "private key", hint)
        })?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, private, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                CertificateError::Mismatch { certificate: self.certificate.clone(), key: self.key.clone() }
            }
            source => CertificateError::Unusable { certificate: self.certificate.clone(), source },
        })?;
        Ok(Loaded { key: certified, digest: digest_of(certificate, key), valid_until_s })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(file).map_err(|source| CertificateError::Unreadable { file: file.to_owned(), source })
}

fn digest_of(certificate: &[u8], key: &[u8]) -> Digest {
    let mut both = digest::Context::new(&digest::SHA256);
    // The length keeps two files apart from the same bytes cut elsewhere.
    both.update(&certificate.len().to_le_bytes());
    both.update(certificate);
    both.update(key);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(both.finish().as_ref());
    bytes
}

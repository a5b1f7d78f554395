//! The file that outlives the process: one JSON entry a line, appended and forced to disk.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use super::{book::Book, records::Entry};

/// An open journal, locked against a second process.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    /// Opens or creates the file and applies its entries to `book`.
    pub(super) fn open(path: &Path, book: &mut Book) -> io::Result<Self> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another payment sandbox uses it: stop that one first"),
            TryLockError::Error(error) => error,
        })?;
        // The name must survive a crash as well as the content.
        File::open(directory)?.sync_all()?;
        let whole = replay(&file, book)?;
        // A crash in the middle of a write leaves half a line. Its change was never answered, so it never was.
        file.set_len(whole)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// Appends entries and returns once they are on disk.
    pub(super) fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::with_capacity(entries.len() * 256);
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        self.0.write_all(&lines)?;
        self.0.sync_data()
    }
}

/// Applies every whole line. Returns how many bytes they take.
fn replay(file: &File, book: &mut Book) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let mut whole = 0;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if length == 0 || !line.ends_with(b"\n") {
            break;
        }
        let entry = serde_json::from_slice(&line).ok();
        entry.and_then(|entry| book.apply(entry)).ok_or_else(|| {
            let cure = "restore the file from a copy, or move it away to begin anew";
            io::Error::new(io::ErrorKind::InvalidData, format!("line {number} is damaged or not ours: {cure}"))
        })?;
        whole += length as u64;
    }
    Ok(whole)
}

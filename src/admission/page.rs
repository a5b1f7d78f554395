//! A file that is written whole or not at all.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::{
    fs::{self, File},
    io::{AsyncWriteExt as _, BufWriter},
};

/// A file that takes its name's place when it is whole.
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    draft: PathBuf,
    file: BufWriter<File>,
}

impl Page {
    /// Begins a draft beside it.
    pub(super) async fn begin(path: PathBuf) -> io::Result<Self> {
        let draft = path.with_extension(format!("{:016x}.draft", rand::random::<u64>()));
        let file = BufWriter::with_capacity(1 << 16, File::create_new(&draft).await?);
        Ok(Self { path, draft, file })
    }

    /// Adds to the draft.
    pub(super) async fn add(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text).await
    }

    /// The draft is whole: it takes the name, so that it is there after a loss of power too.
    pub(super) async fn keep(mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.get_ref().sync_all().await?;
        fs::rename(&self.draft, &self.path).await?;
        let dir = self.path.parent().unwrap_or(Path::new("."));
        File::open(dir).await?.sync_all().await
    }
}

/// A draft that was not kept is of no use to anybody.
impl Drop for Page {
    fn drop(&mut self) {
        // Gone already where it was kept; a removal is quick, and there is no waiting here.
        let _ = std::fs::remove_file(&self.draft);
    }
}

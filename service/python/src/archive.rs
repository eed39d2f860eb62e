//! Archives that functions need unpacked: Python unpacks them, since it is what will read them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::{Error, Result};

/// Takes the archive's path, its format and the folder. Members that would leave the folder are an error.
const UNPACK: &str = "import shutil, sys
archive, form, folder = sys.argv[1:]
shutil.unpack_archive(archive, folder, form, **({} if form == 'zip' else {'filter': 'data'}))";
const TIMEOUT: Duration = Duration::from_secs(300);

pub async fn unpack(interpreter: &Path, archive: &Path, name: &str, folder: &Path) -> Result<()> {
    let refused = |detail: &str| Error::Archive { name: name.to_owned(), detail: detail.to_owned() };
    let form = form(name).ok_or_else(|| refused("expected .zip, .jar, .tar, .tar.gz or .tgz"))?;
    let mut command = Command::new(interpreter);
    command.arg("-c").arg(UNPACK).arg(archive).arg(form).arg(folder);
    command.stdin(Stdio::null()).current_dir("/").kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT, command.output())
        .await
        .map_err(|_| refused("it takes too long"))?
        .map_err(|source| refused(&source.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(refused(stderr.lines().last().unwrap_or("no reason was given")))
}

fn form(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let forms = [(".zip", "zip"), (".jar", "zip"), (".tar.gz", "gztar"), (".tgz", "gztar"), (".tar", "tar")];
    forms.into_iter().find(|(extension, _)| name.ends_with(extension)).map(|(_, form)| form)
}

#[cfg(test)]
mod tests {
    use super::form;

    #[test]
    fn archives_are_told_by_their_names() {
        let forms = ["a.zip", "A.JAR", "x/b.tar.gz", "c.tgz", "d.tar", "e.rar"].map(form);
        assert_eq!(forms, [Some("zip"), Some("zip"), Some("gztar"), Some("gztar"), Some("tar"), None]);
    }
}

use std::{sync::Barrier, thread};

use super::*;

const KEY_A: &str = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
const KEY_B: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddee00";

fn loaded(text: &str) -> Result<Vec<String>, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.txt");
    fs::write(&path, text).unwrap();
    match load_or_create(&path) {
        Ok((keyring, created)) => {
            assert!(!created);
            Ok(keyring.ids())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn id_of(hex: &str) -> String {
    SigningKey::from_secret(&decode_hex(hex).unwrap()).unwrap().id().to_owned()
}

#[test]
fn the_first_start_makes_a_private_file_that_the_second_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/keys.txt");

    let (first, created) = load_or_create(&path).unwrap();
    assert!(created);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a draft was left behind");

    let (second, created) = load_or_create(&path).unwrap();
    assert!(!created);
    assert_eq!(first.ids(), second.ids());
}

#[test]
fn starts_at_the_same_moment_agree_on_one_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.txt");
    let barrier = Barrier::new(4);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let start = || {
            barrier.wait();
            load_or_create(&path).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|(_, created)| *created).count(), 1);
    assert!(outcomes.iter().all(|(keyring, _)| keyring.ids() == outcomes[0].0.ids()));
}

#[test]
fn several_keys_comments_and_blank_lines_are_read_in_order() {
    let text = format!("# rotated in May\n\n  {KEY_A}  # new\n{KEY_B}\r\n");
    assert_eq!(loaded(&text), Ok(vec![id_of(KEY_A), id_of(KEY_B)]));
    let from_env = from_env_value(&format!("{KEY_A}, {KEY_B}")).unwrap();
    assert_eq!(from_env.ids(), [id_of(KEY_A), id_of(KEY_B)]);
}

#[test]
fn a_broken_line_is_named_without_its_text() {
    for broken in ["xyz", &KEY_A[..62], &KEY_A[..63], &format!("{KEY_A}é"), &format!("{KEY_A} {KEY_B}")] {
        let error = loaded(&format!("{KEY_A}\n# a comment\n{broken}\n")).unwrap_err();
        assert!(error.starts_with("line 3 of ") && error.contains("stanchion keygen"), "{error}");
        assert!(!error.contains(broken), "{error}");
    }
    let error = from_env_value(&format!("{KEY_A},,")).unwrap_err().to_string();
    assert!(error.starts_with("key 2 of STANCHION_KEYS"), "{error}");
}

#[test]
fn no_key_at_all_is_said_so() {
    assert!(loaded("# nothing\n\n").unwrap_err().contains("holds no key"));
    assert!(from_env_value(" ").unwrap_err().to_string().contains("holds no key"));
}

#[test]
fn a_generated_secret_is_a_key_and_is_written_once() {
    let secret = generate();
    assert_eq!((secret.len(), from_env_value(&secret).unwrap().ids()), (64, vec![id_of(&secret)]));
    assert_ne!(secret, generate());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    write_secret(&path, &secret).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let error = write_secret(&path, "another").unwrap_err().to_string();
    assert!(error.starts_with("cannot create the key file"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), secret);
}

#[test]
fn an_unusable_path_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = load_or_create(directory.path()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the key file") && error.contains(directory.path().to_str().unwrap()));
}

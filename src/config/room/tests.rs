use super::*;

/// What is wrong with a room that has these lines.
fn wrong(lines: &str) -> String {
    let file =
        super::super::file::ConfigFile::parse(&format!("[[rooms]]\norigin = \"http://127.0.0.1:3000\"\n{lines}"))
            .unwrap();
    let mut problems = Problems::default();
    let room = file.rooms.into_iter().next().and_then(|table| RoomConfig::check(table, &mut problems));
    problems.finish(room).map_or_else(|error| error.to_string(), |_| String::new())
}

const TIMES: &str = "prequeue_at = \"2030-05-01T09:30:00Z\"\nopens_at = \"2030-05-01T10:00:00Z\"\n";

#[test]
fn a_lottery_is_a_schedule_and_perhaps_a_beacon() {
    assert_eq!(wrong(TIMES), "");
    assert_eq!(wrong(&format!("{TIMES}method = \"lottery\"\nbeacon = \"drand quicknet round 12345678\"")), "");
    assert_eq!(wrong(&format!("{TIMES}closes_at = \"2030-05-01T18:00:00+02:00\"")), "");
}

#[test]
fn a_schedule_that_cannot_be_says_what_to_do() {
    for (lines, why) in [
        ("prequeue_at = \"2030-05-01T09:30:00Z\"", "prequeue_at without opens_at"),
        ("method = \"lottery\"", "needs prequeue_at and opens_at"),
        ("method = \"lottery\"\nopens_at = \"2030-05-01T10:00:00Z\"", "needs prequeue_at and opens_at"),
        ("opens_at = \"tomorrow\"", "\"tomorrow\" is not a time such as"),
        ("opens_at = \"1950-01-01T00:00:00Z\"", "is before 1970"),
        ("prequeue_at = \"2030-05-01T10:00:00Z\"\nopens_at = \"2030-05-01T10:00:00Z\"", "not before opens_at"),
        ("opens_at = \"2030-05-01T10:00:00Z\"\ncloses_at = \"2030-05-01T12:00:00+02:00\"", "not after opens_at"),
        (&format!("{TIMES}beacon = \"drand round 5\""), "beacon is for method = \"lottery\""),
        (&format!("{TIMES}method = \"lottery\"\nbeacon = \"\""), "name the round in 1 to 256 characters"),
        (&format!("{TIMES}queue_token_ttl = \"34m\""), "queue_token_ttl is shorter than the pre-queue"),
    ] {
        let said = wrong(lines);
        assert!(said.contains(why), "{lines}: {said}");
    }
}

#[test]
fn a_route_that_is_kept_has_a_name() {
    for lines in ["path_prefix = \"/event\"", "path_prefix = \"/\"", "path_prefix = \"/event/\"\nfor_everyone = true"] {
        assert_eq!(wrong(&format!("[[rooms.cache]]\n{lines}")), "", "{lines}");
    }
    for (lines, why) in [
        ("for_everyone = true", "cache: path_prefix is missing"),
        ("path_prefix = \"event\"", "must start with '/'"),
        ("path_prefix = \"/event?x\"", "matches no request"),
        ("path_prefix = \"/\"\nfor_everyone = true", "let everybody read the whole shop"),
    ] {
        let said = wrong(&format!("[[rooms.cache]]\n{lines}"));
        assert!(said.contains(why), "{lines}: {said}");
    }
}

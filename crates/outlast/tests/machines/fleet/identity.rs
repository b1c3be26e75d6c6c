//! Keys, and what the broker lets each of them do.

use std::path::Path;

use outlast_testkit::{Sandbox, TEST_TIMEOUT, eventually};

use super::{Broker, Host, sees};
use crate::sandbox;

/// A fleet with a host, a user, and a guest who reaches nobody.
fn fleet(owner: &Sandbox) -> std::path::PathBuf {
    let folder = owner.root().join("fleet");
    let at = folder.to_str().unwrap();
    owner.run(["fleet", "init", at]).ok();
    for member in [&["one", "--host", "--label", "build"][..], &["alice"], &["guest", "--reach", "nobody"]] {
        let to = owner.root().join(format!("{}.toml", member[0]));
        owner.run([&["fleet", "add", at][..], member, &["--to", to.to_str().unwrap()]].concat()).ok();
    }
    folder
}

/// Hands a bundle over; the broker's address is only known when it runs.
fn hand_over(owner: &Sandbox, name: &str, to: &Sandbox, broker: &Broker) {
    let bundle = owner.root().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&bundle)
        .unwrap()
        .replace("127.0.0.1:4222", &format!("127.0.0.1:{}", broker.port()));
    std::fs::write(&bundle, text).unwrap();
    to.run([Path::new("fleet"), Path::new("join"), &bundle]).ok();
}

#[test]
fn members_speak_only_in_their_own_name_and_a_revoked_one_not_at_all() {
    let owner = sandbox();
    let folder = fleet(&owner);
    let Some(broker) = Broker::start_with(Some(folder.join("nats-server.conf"))) else { return };
    let (alice, guest) = (sandbox(), sandbox());
    hand_over(&owner, "alice", &alice, &broker);
    hand_over(&owner, "guest", &guest, &broker);
    let mut host = Host { box_: sandbox(), name: "one".into(), node: None };
    hand_over(&owner, "one", &host.box_, &broker);
    host.start(&[], &[]);
    sees(&alice, &["one"]);
    let ran = alice.run(["run", "--on", "one", "echo hello"]).ok();
    assert!(ran.text().contains("hello"), "{ran}");
    let done = alice.run(["submit", "--on", "build", "--wait", "true"]).ok();
    assert!(done.text().contains("completed"), "{done}");
    let refused = guest.run(["run", "--on", "one", "-d", "echo hello"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    // Somebody without a key.
    let stranger = sandbox();
    broker.tell(&stranger, "alice");
    let refused = stranger.run(["jobs", "--fleet"]);
    assert!(refused.stderr.contains("cannot reach the broker"), "{refused}");
    owner.run(["fleet", "revoke", folder.to_str().unwrap(), "alice"]).ok();
    broker.signal(rustix::process::Signal::HUP);
    eventually("alice is out", TEST_TIMEOUT, || {
        let refused = alice.run(["jobs", "--fleet"]);
        if refused.code == Some(0) { Err(refused.to_string()) } else { Ok(()) }
    });
    sees_from(&owner, &folder, &broker);
}

/// A new key for the same name lets the user in again.
fn sees_from(owner: &Sandbox, folder: &Path, broker: &Broker) {
    let to = owner.root().join("alice.toml");
    owner.run(["fleet", "add", folder.to_str().unwrap(), "alice", "--to", to.to_str().unwrap()]).ok();
    broker.signal(rustix::process::Signal::HUP);
    let again = sandbox();
    hand_over(owner, "alice", &again, broker);
    eventually("alice is in again", TEST_TIMEOUT, || {
        let ran = again.run(["jobs", "--fleet"]);
        if ran.code == Some(0) { Ok(()) } else { Err(ran.to_string()) }
    });
}

//! Questions and progress of Rust's prompt libraries, one by its name: rows of the table of programs that wait or work.

use std::time::Duration;
fn main() {
    let which = std::env::args().nth(1).unwrap();
    let items = ["one", "two", "three"];
    match which.as_str() {
        "d-input" => {
            let _: String = dialoguer::Input::new().with_prompt("Project").interact_text().unwrap();
        }
        "d-confirm" => {
            dialoguer::Confirm::new().with_prompt("Go on?").interact().unwrap();
        }
        "d-select" => {
            dialoguer::Select::new().with_prompt("Pick").items(&items).default(0).interact().unwrap();
        }
        "d-multi" => {
            dialoguer::MultiSelect::new().with_prompt("Pick").items(&items).interact().unwrap();
        }
        "d-fuzzy" => {
            dialoguer::Sort::new().with_prompt("Sort").items(&items).interact().unwrap();
        }
        "d-password" => {
            dialoguer::Password::new().with_prompt("Geheim").interact().unwrap();
        }
        "d-theme-password" => {
            dialoguer::Password::with_theme(&dialoguer::theme::ColorfulTheme::default())
                .with_prompt("New password")
                .interact()
                .unwrap();
        }
        "i-text" => {
            inquire::Text::new("Name?").prompt().unwrap();
        }
        "i-password" => {
            inquire::Password::new("Encryption key:").prompt().unwrap();
        }
        "i-password2" => {
            inquire::Password::new("Code:")
                .with_display_mode(inquire::PasswordDisplayMode::Hidden)
                .without_confirmation()
                .prompt()
                .unwrap();
        }
        "i-confirm" => {
            inquire::Confirm::new("Deploy?").with_default(false).prompt().unwrap();
        }
        "i-select" => {
            inquire::Select::new("Pick", items.to_vec()).prompt().unwrap();
        }
        "i-multi" => {
            inquire::MultiSelect::new("Pick", items.to_vec()).prompt().unwrap();
        }
        "rpassword" => {
            rpassword::prompt_password("Vault: ").unwrap();
        }
        "c-text" => {
            let _: String = cliclack::input("Where?").interact().unwrap();
        }
        "c-password" => {
            cliclack::password("Your password").mask('▪').interact().unwrap();
        }
        "c-select" => {
            cliclack::select("Pick").item(1, "one", "").item(2, "two", "").interact().unwrap();
        }
        "c-confirm" => {
            cliclack::confirm("Sure?").interact().unwrap();
        }
        "c-spinner" => {
            let s = cliclack::spinner();
            s.start("Installing");
            std::thread::sleep(Duration::from_secs(60));
            s.stop("x");
        }
        "rustyline" => {
            let mut e = rustyline::DefaultEditor::new().unwrap();
            loop {
                let l = e.readline("calc> ").unwrap();
                println!("= {l}");
            }
        }
        "rustyline-question" => {
            let mut e = rustyline::DefaultEditor::new().unwrap();
            e.readline("Your name: ").unwrap();
        }
        "reedline" => {
            let mut e = reedline::Reedline::create();
            loop {
                e.read_line(&reedline::DefaultPrompt::default()).unwrap();
            }
        }
        "bar" => {
            let b = indicatif::ProgressBar::new(1000);
            for _ in 0..1000 {
                b.inc(1);
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        "spinner" => {
            let b = indicatif::ProgressBar::new_spinner();
            b.set_message("Resolving:");
            b.enable_steady_tick(Duration::from_millis(120));
            std::thread::sleep(Duration::from_secs(60));
        }
        "key" => {
            print!("Which one (1-9)? ");
            use std::io::Write;
            std::io::stdout().flush().unwrap();
            crossterm::terminal::enable_raw_mode().unwrap();
            crossterm::event::read().unwrap();
            crossterm::terminal::disable_raw_mode().unwrap();
        }
        "ratatui" => {
            let mut t = ratatui::init();
            t.draw(|f| f.render_widget("Hello, press q", f.area())).unwrap();
            loop {
                if let crossterm::event::Event::Key(_) = crossterm::event::read().unwrap() {
                    break;
                }
            }
            ratatui::restore();
        }
        "ratatui-tick" => {
            let mut t = ratatui::init();
            let mut n = 0;
            loop {
                n += 1;
                t.draw(|f| f.render_widget(format!("frame {}", n / 40), f.area())).unwrap();
                if crossterm::event::poll(Duration::from_millis(50)).unwrap() {
                    break;
                }
            }
            ratatui::restore();
        }
        "ratatui-work" => {
            let mut t = ratatui::init();
            std::thread::spawn(|| {
                let s = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                let _ = s.accept();
            });
            loop {
                t.draw(|f| f.render_widget("Downloading", f.area())).unwrap();
                if crossterm::event::poll(Duration::from_millis(250)).unwrap() {
                    break;
                }
            }
            ratatui::restore();
        }
        other => panic!("{other}"),
    }
}

//! The answer to a request, without I/O.

use std::error::Error;
use subtle::ConstantTimeEq;

/// The page, in which `NONCE` stands for a random word and the last two words for the files.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Length of a token, bytes.
const TOKEN: usize = 16;

/// A random number that cannot be guessed.
pub struct Token(String);

impl Token {
    /// Returns a new token.
    pub fn random() -> Result<Token, Box<dyn Error>> {
        let mut bytes = [0; TOKEN];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the token as hexadecimal digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the texts differ.
    fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// Function that returns the present data as JSON, with the details of a rank.
type Data = Box<dyn Fn(Option<u64>) -> Result<String, String> + Send + Sync>;

/// The page and its data.
pub struct Site {
    /// Token that is the first part of every path.
    pub token: Token,
    /// Source of the data.
    pub data: Data,
}

/// The parts of a request that matter.
pub struct Request<'a> {
    /// Method, e.g. GET.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Value of the header Host; None unless there is exactly one.
    pub host: Option<&'a str>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status code and text.
    pub status: &'static str,
    /// Media type of the body.
    pub kind: &'static str,
    /// Random word of the page's own script and style; those without it are not run.
    pub nonce: Option<String>,
    pub body: String,
}

impl Answer {
    /// Returns an answer of one line.
    pub fn plain(status: &'static str, line: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", nonce: None, body: format!("{line}\n") }
    }
}

impl Site {
    /// Answers a request.
    pub fn answer(&self, request: &Request) -> Answer {
        if !request.host.is_some_and(is_this_machine) {
            return Answer::plain("403 Forbidden", "this page is named 127.0.0.1 or localhost");
        }
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let (token, rest) = path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or(("", ""));
        if !self.token.is(token) {
            return Answer::plain("403 Forbidden", "the address lacks the token that `ntbring top --web` has printed");
        }
        match (request.method, rest) {
            ("GET", "") => page(),
            ("GET", "data") => {
                let rank = query.split('&').find_map(|part| part.strip_prefix("rank="));
                match (self.data)(rank.and_then(|rank| rank.parse().ok())) {
                    Ok(body) => Answer { status: "200 OK", kind: "application/json", nonce: None, body },
                    Err(error) => Answer::plain("500 Internal Server Error", &error),
                }
            }
            ("GET", _) => Answer::plain("404 Not Found", "there is no such page"),
            _ => Answer::plain("405 Method Not Allowed", "only GET is answered"),
        }
    }
}

fn page() -> Answer {
    match Token::random() {
        Ok(Token(nonce)) => {
            let body = PAGE.replace("NONCE", &nonce).replace("STYLE", STYLE).replace("SCRIPT", SCRIPT);
            Answer { status: "200 OK", kind: "text/html; charset=utf-8", nonce: Some(nonce), body }
        }
        Err(error) => Answer::plain("500 Internal Server Error", &error.to_string()),
    }
}

/// Returns true if a Host header names this machine itself. The port may be another: that of a tunnel by ssh.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        Some(_) => return false,
        None => host,
    };
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site { token: Token("cafe".into()), data: Box::new(|rank| Ok(format!("{rank:?}"))) }
    }

    fn get(target: &str, host: Option<&str>) -> Answer {
        site().answer(&Request { method: "GET", target, host })
    }

    const HERE: Option<&str> = Some("127.0.0.1:8080");

    #[test]
    fn without_the_token_nothing_is_answered() {
        for target in ["/", "", "/data", "/cafe", "/caff/", "/caf/data", "/cafecafe/data", "//data", "/../cafe/"] {
            let answer = get(target, HERE);
            assert_eq!(answer.status, "403 Forbidden", "{target}");
            assert!(!answer.body.contains("cafe"));
        }
        assert_eq!(get("/cafe/", HERE).status, "200 OK");
        assert_eq!(get("/cafe/other", HERE).status, "404 Not Found");
        let post = site().answer(&Request { method: "POST", target: "/cafe/data", host: HERE });
        assert_eq!(post.status, "405 Method Not Allowed");
    }

    #[test]
    fn other_names_of_this_machine_are_refused() {
        for host in [None, Some("evil.example"), Some("127.0.0.1.evil.example:80"), Some("127.0.0.1:x"), Some("")] {
            assert_eq!(get("/cafe/", host).status, "403 Forbidden", "{host:?}");
        }
        for host in ["127.0.0.1", "localhost:1", "LOCALHOST"] {
            assert_eq!(get("/cafe/", Some(host)).status, "200 OK", "{host}");
        }
    }

    #[test]
    fn data_are_those_of_the_rank_that_is_asked_for() {
        assert_eq!(get("/cafe/data", HERE).body, "None");
        assert_eq!(get("/cafe/data?x=1&rank=3", HERE).body, "Some(3)");
        assert_eq!(get("/cafe/data?rank=x", HERE).body, "None");
    }

    #[test]
    fn the_page_is_whole_and_needs_nothing_else() {
        let page = get("/cafe/", HERE);
        let nonce = page.nonce.unwrap();
        assert_eq!(page.body.matches(&nonce).count(), 2);
        assert!(page.body.contains("</html>") && page.body.contains("fetch("));
        // The only address is the name of SVG.
        let addresses: Vec<_> = page.body.match_indices("://").collect();
        assert!(addresses.len() == page.body.matches("http://www.w3.org/2000/svg").count(), "{addresses:?}");
        assert!(["NONCE", "STYLE", "SCRIPT"].iter().all(|word| !page.body.contains(word)));
        assert_ne!(Token::random().unwrap().text(), Token::random().unwrap().text());
    }
}

package doctor

import (
	"context"
	"log/slog"

	"palmares/internal/core/problem"
	letters "palmares/internal/notify/mail"
)

// mail goes as far as a letter would, and hands none over.
func mail(ctx context.Context, cfg *Config, r *report) {
	if cfg.SMTPURL == "" {
		if cfg.Private {
			r.ok("mail", "No mail server is set: sign-in links are printed to the log.")
		} else {
			r.warn("mail", "No mail server is set, so nobody can sign in.", "Set SMTP_URL.", nil)
		}
		return
	}
	mailer, err := letters.New(letters.Config{URL: cfg.SMTPURL, From: cfg.MailFrom, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.wrong("mail", sentence(err.Error()), "Correct SMTP_URL or MAIL_FROM.", nil)
		return
	}
	got, err := mailer.Reach(ctx)
	switch {
	case err != nil:
		trouble := problem.Of(err)
		r.wrong("mail", trouble.Message, "Correct SMTP_URL (smtp:// is STARTTLS, smtps:// is TLS), or see to the mail server. No letter was sent.", trouble.Cause)
	case !got.Encrypted && mailer.HasPassword():
		r.warn("mail", "The mail server on this machine offers no encryption, so the password is not sent.", "Let it offer STARTTLS, or leave the password out of SMTP_URL.", nil)
	case !got.Encrypted:
		r.ok("mail", "The mail server on this machine takes connections, without encryption.")
	case got.SignedIn:
		r.ok("mail", "The mail server takes our connection, encrypted, and our password.")
	default:
		r.ok("mail", "The mail server takes our connection, encrypted.")
	}
}

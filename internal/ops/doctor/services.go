package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/notify/mail"
)

func checkRedis(ctx context.Context, cfg *Config, r *report) {
	if cfg.RedisURL == "" {
		r.ok("redis", "REDIS_URL is not set: each server counts requests on its own.")
		return
	}
	state, err := quota.InspectRedis(ctx, cfg.RedisURL, cfg.Now)
	var timeout net.Error
	const fallback = " Each server counts requests on its own meanwhile."
	switch {
	case quota.IsAuthError(err):
		r.wrong("redis", "Redis rejected the user, the password or a command."+fallback, "Correct REDIS_URL, or allow the user to run scripts and INFO.", err)
		return
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		r.wrong("redis", "Redis took too long to respond."+fallback, "Check that it responds and that no firewall blocks it.", err)
		return
	case err != nil:
		r.wrong("redis", "Redis is unreachable."+fallback, "Start it, or correct REDIS_URL.", err)
		return
	case state.IsReplica:
		r.wrong("redis", "This Redis is a read-only replica.", "Set REDIS_URL to its primary.", nil)
		return
	}
	persistence := "persists its data to disk"
	if !state.Persistent {
		persistence = "persists nothing: after it restarts, the servers restore the counts they know"
	}
	r.ok("redis", "Redis %s responds and %s.", state.Version, persistence)
	checkRedisMemory(state, r)
	r.clock("redis clock", "Redis'", state.Clock, state.LocalClock)
}

// checkRedisMemory checks that Redis evicts no counts: a caller whose count is
// evicted gets a new quota.
func checkRedisMemory(state *quota.RedisState, r *report) {
	used, limit := formatBytes(state.Memory), formatBytes(state.MemoryLimit)
	switch {
	case state.MemoryLimit == 0:
		r.ok("redis memory", "%s are in use, without a limit.", used)
	case state.Policy != "noeviction":
		r.warn("redis memory", fmt.Sprintf("Redis evicts counts when its %s are full (%s).", limit, state.Policy), "Set its maxmemory-policy to noeviction.", nil)
	case state.Memory > state.MemoryLimit/10*9:
		r.warn("redis memory", fmt.Sprintf("%s of %s are in use. Redis stops counting requests when its memory is full.", used, limit), "Raise its maxmemory.", nil)
	default:
		r.ok("redis memory", "%s of %s are in use, and nothing is evicted.", used, limit)
	}
}

// checkMail connects and signs in to the mail server, and sends nothing.
func checkMail(ctx context.Context, cfg *Config, r *report) {
	if cfg.SMTPURL == "" {
		if cfg.Private {
			r.ok("mail", "SMTP_URL is not set: sign-in links are printed to the log.")
		} else {
			r.warn("mail", "SMTP_URL is not set, so nobody can sign in.", "Set SMTP_URL to your mail server.", nil)
		}
		return
	}
	mailer, err := mail.New(mail.Config{URL: cfg.SMTPURL, From: cfg.MailFrom, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.wrong("mail", sentence(err.Error()), "Correct SMTP_URL or MAIL_FROM.", nil)
		return
	}
	got, err := mailer.Probe(ctx)
	switch {
	case err != nil:
		p := problem.Of(err)
		r.wrong("mail", p.Message, "Correct SMTP_URL (smtp:// uses STARTTLS, smtps:// uses TLS), or fix the mail server. No email was sent.", p.Cause)
	case !got.Encrypted && mailer.HasPassword():
		r.warn("mail", "The mail server on this machine offers no encryption, so the password is not sent.", "Enable STARTTLS on the mail server, or remove the password from SMTP_URL.", nil)
	case !got.Encrypted:
		r.ok("mail", "The mail server on this machine accepts unencrypted connections.")
	case got.SignedIn:
		r.ok("mail", "The mail server accepts an encrypted connection and the password.")
	default:
		r.ok("mail", "The mail server accepts an encrypted connection.")
	}
}

// checkStripe only reads from Stripe.
func checkStripe(ctx context.Context, cfg *Config, r *report) {
	if cfg.Stripe.SecretKey == "" {
		r.ok("stripe", "STRIPE_SECRET_KEY is not set: Pro is not for sale.")
		return
	}
	if cfg.Stripe.WebhookSecret == "" {
		r.wrong("stripe secret", "STRIPE_WEBHOOK_SECRET is missing; the server does not start without it.", "Set it to the signing secret that Stripe shows for the endpoint PUBLIC_URL"+billing.EventsPath+".", nil)
	}
	stripe := billing.New(billing.Config{
		SecretKey: cfg.Stripe.SecretKey, WebhookSecret: cfg.Stripe.WebhookSecret, Price: cfg.Stripe.Price, APIBase: cfg.Stripe.APIBase, PublicURL: cfg.PublicURL,
	})
	price, err := stripe.InspectPrice(ctx)
	switch {
	case billing.IsInvalidKey(err):
		r.wrong("stripe", "Stripe rejected the key in STRIPE_SECRET_KEY.", "Set it to a key that Stripe's dashboard shows as active.", err)
		return
	case billing.IsForbidden(err):
		r.wrong("stripe", "The key in STRIPE_SECRET_KEY has no permission to read prices.", "Use a secret key, or give the restricted key that permission.", err)
		return
	case err != nil:
		r.wrong("stripe", "Stripe does not respond.", "Check that this machine can reach Stripe's API, and Stripe's status page.", err)
		return
	}
	if !cfg.Private && strings.HasPrefix(cfg.Stripe.SecretKey, "sk_test_") {
		r.warn("stripe", "Stripe accepts the key, but it is a test key: no payments are made.", "Set the live key to sell Pro.", nil)
	} else {
		r.ok("stripe", "Stripe accepts the key.")
	}
	checkPrice(cfg, price, r)

	active, err := stripe.ComputesTax(ctx)
	switch {
	case err != nil:
		r.stripeUnknown("tax", "The settings of Stripe Tax", err)
	case !active:
		r.wrong("tax", "Stripe Tax is not set up, so nobody can subscribe.", "Add your address and registrations under Tax in Stripe's dashboard.", nil)
	default:
		r.ok("tax", "Stripe calculates taxes.")
	}

	page, err := stripe.InspectPortal(ctx)
	switch {
	case err != nil:
		r.stripeUnknown("managing", "The settings of Stripe's customer portal", err)
	case page == billing.PortalConfigs{}:
		r.wrong("managing", "Stripe's customer portal is not set up, so subscribers cannot change their card, see invoices or cancel.", "Run palmares billing setup.", nil)
	default:
		r.ok("managing", "Subscribers can manage cards, invoices and cancellation in Stripe's customer portal.")
	}

	if cfg.Private { // Stripe cannot reach it; developers use Stripe's CLI to forward events
		return
	}
	missing, err := stripe.MissingEvents(ctx)
	switch {
	case err != nil:
		r.stripeUnknown("events", "The list of webhook endpoints", err)
	case len(missing) == len(billing.Events):
		r.warn("events", "Stripe sends no events to "+cfg.PublicURL+billing.EventsPath+".", "Add this endpoint in Stripe's dashboard; palmares billing setup lists the events.", nil)
	case len(missing) > 0:
		r.warn("events", "Stripe does not send "+strings.Join(missing, ", ")+".", "Add these events to the endpoint in Stripe's dashboard.", nil)
	default:
		r.ok("events", "Stripe sends all required events.")
	}
}

func checkPrice(cfg *Config, price billing.PriceState, r *report) {
	expected := fmt.Sprintf("%d EUR a month before tax", billing.MonthlyEuros)
	switch {
	case price.ID == "" && cfg.Stripe.Price != "":
		r.wrong("price", "The price in STRIPE_PRICE does not exist.", "Correct STRIPE_PRICE, or remove it and run palmares billing setup.", nil)
	case price.ID == "":
		r.wrong("price", "Stripe has no price for Pro.", "Run palmares billing setup.", nil)
	case !price.Active:
		r.wrong("price", fmt.Sprintf("The price %s is archived.", price.ID), "Set STRIPE_PRICE to another one, or remove it and run palmares billing setup.", nil)
	case !price.AsAdvertised && cfg.Stripe.Price == "":
		r.wrong("price", fmt.Sprintf("The price %s is not %s, as the website says.", price.ID, expected), "Archive it and run palmares billing setup.", nil)
	case !price.AsAdvertised:
		r.warn("price", fmt.Sprintf("The price %s is not %s, as the website says.", price.ID, expected), "Set STRIPE_PRICE to another one, unless this is intended.", nil)
	default:
		r.ok("price", "The price %s is %s.", price.ID, expected)
	}
}

// stripeUnknown reports settings that a restricted key cannot read.
func (r *report) stripeUnknown(check, what string, err error) {
	r.warn(check, what+" cannot be read.", "Look them up in Stripe's dashboard, or give the key permission to read them.", err)
}

BEGIN TRANSACTION;
CREATE TABLE api_token (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	shown VARCHAR(16) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	scopes TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	used DATETIME, 
	revoked DATETIME, 
	characters INTEGER NOT NULL, 
	CONSTRAINT uq_api_token_hash UNIQUE (hash)
);
INSERT INTO "api_token" VALUES(1,'memoQ','tmt_9Ga8wB_z','7b48f5f530f9ef5c80d2b2efc2494f9437fde477f480064381f2f44703bab318','read,translate','2026-11-21 15:32:11.425216','2026-11-21 15:32:11.425584',NULL,1234);
CREATE TABLE comparison (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	rows JSON NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT fk_comparison_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);
INSERT INTO "comparison" VALUES(1,2,'First look','[{"source": "I see.", "vanilla": "\u6211\u660e\u767d\u4e86\u3002"}]','2026-11-21 15:32:11.399105');
INSERT INTO "comparison" VALUES(2,2,'Sheet','[]','2026-11-21 15:32:11.399782');
CREATE TABLE comparison_line (
	comparison_id INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	reference TEXT, 
	texts JSON NOT NULL, 
	scores JSON NOT NULL, 
	done BOOLEAN NOT NULL, 
	difference DOUBLE, 
	change DOUBLE, 
	CONSTRAINT pk_comparison_line PRIMARY KEY (comparison_id, place), 
	CONSTRAINT fk_comparison_line_comparison_id_comparison FOREIGN KEY(comparison_id) REFERENCES comparison (id) ON DELETE CASCADE
);
INSERT INTO "comparison_line" VALUES(2,0,'I see.','我懂了。','[null]','[null]',0,NULL,NULL);
INSERT INTO "comparison_line" VALUES(2,1,'It rains.',NULL,'[null]','[null]',0,NULL,NULL);
CREATE TABLE comparison_sheet (
	comparison_id INTEGER NOT NULL, 
	file TEXT NOT NULL, 
	lines INTEGER NOT NULL, 
	"references" INTEGER NOT NULL, 
	systems JSON NOT NULL, 
	figures JSON NOT NULL, 
	job_id INTEGER, 
	kept BOOLEAN NOT NULL, 
	revision INTEGER NOT NULL, 
	CONSTRAINT pk_comparison_sheet PRIMARY KEY (comparison_id), 
	CONSTRAINT fk_comparison_sheet_comparison_id_comparison FOREIGN KEY(comparison_id) REFERENCES comparison (id) ON DELETE CASCADE, 
	CONSTRAINT fk_comparison_sheet_job_id_job FOREIGN KEY(job_id) REFERENCES job (id) ON DELETE SET NULL
);
INSERT INTO "comparison_sheet" VALUES(2,'',2,1,'[{"name": "base", "plugin_id": null, "method": "", "strength": 0.0}]','{}',NULL,0,0);
CREATE TABLE corpus (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	folder TEXT NOT NULL, 
	kept INTEGER NOT NULL, 
	skipped JSON NOT NULL, 
	report JSON NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT fk_corpus_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);
INSERT INTO "corpus" VALUES(1,2,'呐喊.txt','ready','/data/projects/2',412,'{"too long": 3}','{"kept": 412, "warnings": []}','2026-11-21 15:32:11.325345');
CREATE TABLE default_plugin (
	project_id INTEGER NOT NULL, 
	plugin_id INTEGER, 
	CONSTRAINT pk_default_plugin PRIMARY KEY (project_id), 
	CONSTRAINT fk_default_plugin_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE, 
	CONSTRAINT fk_default_plugin_plugin_id_plugin FOREIGN KEY(plugin_id) REFERENCES plugin (id) ON DELETE CASCADE
);
INSERT INTO "default_plugin" VALUES(2,1);
CREATE TABLE job (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id INTEGER, 
	kind VARCHAR(64) NOT NULL, 
	arguments JSON NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	step TEXT NOT NULL, 
	step_index INTEGER NOT NULL, 
	steps INTEGER NOT NULL, 
	done DOUBLE NOT NULL, 
	total DOUBLE, 
	eta DOUBLE, 
	note TEXT NOT NULL, 
	metrics JSON NOT NULL, 
	heartbeat DATETIME, 
	worker TEXT NOT NULL, 
	pid INTEGER, 
	attempt INTEGER NOT NULL, 
	error TEXT NOT NULL, 
	result JSON NOT NULL, 
	log_path TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	started DATETIME, 
	finished DATETIME, 
	cancel_requested BOOLEAN NOT NULL, 
	CONSTRAINT fk_job_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);
INSERT INTO "job" VALUES(1,2,'prepare','{"samples": ["\u5450\u558a.txt"]}','succeeded','phrases',1,2,412.0,412.0,NULL,'','{"kept": 412}','2026-11-21 15:32:11.350774','here:1:aa',NULL,1,'','{"phrases": 963}','','2026-11-21 15:32:11.335769','2026-11-21 15:32:11.341626','2026-11-21 15:32:11.360295',0);
INSERT INTO "job" VALUES(2,2,'customize','{"samples": ["\u5450\u558a.txt"], "budget": "quick"}','failed','',0,1,0.0,NULL,NULL,'','{}','2026-11-21 15:32:11.374141','here:1:aa',NULL,1,'The disk is full: the plugin could not be written.','{}','','2026-11-21 15:32:11.366367','2026-11-21 15:32:11.374141','2026-11-21 15:32:11.375966',0);
INSERT INTO "job" VALUES(3,2,'customize','{"samples": ["\u5450\u558a.txt"], "budget": "best"}','queued','',0,1,0.0,NULL,NULL,'','{}',NULL,'',NULL,1,'','{}','','2026-11-21 15:32:11.381927',NULL,NULL,0);
CREATE TABLE job_usage (
	job_id INTEGER NOT NULL, 
	cpu DOUBLE NOT NULL, 
	memory BIGINT NOT NULL, 
	peak BIGINT NOT NULL, 
	gpu BIGINT NOT NULL, 
	gpu_total BIGINT NOT NULL, 
	measured DATETIME NOT NULL, 
	CONSTRAINT pk_job_usage PRIMARY KEY (job_id), 
	CONSTRAINT fk_job_usage_job_id_job FOREIGN KEY(job_id) REFERENCES job (id) ON DELETE CASCADE
);
INSERT INTO "job_usage" VALUES(1,98.5,5000000000,6000000000,0,0,'2026-11-21 15:32:11.359228');
CREATE TABLE phrase_set (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	corpus_id INTEGER NOT NULL, 
	path TEXT NOT NULL, 
	parser TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT fk_phrase_set_corpus_id_corpus FOREIGN KEY(corpus_id) REFERENCES corpus (id) ON DELETE CASCADE
);
INSERT INTO "phrase_set" VALUES(1,1,'/data/projects/2/phrases.jsonl','stanza''s constituency parser, 1.10',963,'2026-11-21 15:32:11.334238');
CREATE TABLE plugin (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id INTEGER NOT NULL, 
	job_id INTEGER, 
	name TEXT NOT NULL, 
	method VARCHAR(64) NOT NULL, 
	path TEXT NOT NULL, 
	base_fingerprint TEXT NOT NULL, 
	metrics JSON NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT fk_plugin_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE, 
	CONSTRAINT fk_plugin_job_id_job FOREIGN KEY(job_id) REFERENCES job (id) ON DELETE SET NULL
);
INSERT INTO "plugin" VALUES(1,2,1,'Lu Xun','memory_adapter','/data/projects/2/luxun.zip','abc','{"bleu": 21.3}','2026-11-21 15:32:11.383374');
CREATE TABLE plugin_tag (
	plugin_id INTEGER NOT NULL, 
	tag VARCHAR(40) NOT NULL, 
	CONSTRAINT pk_plugin_tag PRIMARY KEY (plugin_id, tag), 
	CONSTRAINT fk_plugin_tag_plugin_id_plugin FOREIGN KEY(plugin_id) REFERENCES plugin (id) ON DELETE CASCADE
);
INSERT INTO "plugin_tag" VALUES(1,'style');
INSERT INTO "plugin_tag" VALUES(1,'文学');
CREATE TABLE project (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	source VARCHAR(32) NOT NULL, 
	target VARCHAR(32) NOT NULL, 
	base TEXT NOT NULL, 
	created DATETIME NOT NULL, 
	updated DATETIME NOT NULL
);
INSERT INTO "project" VALUES(2,'鲁迅 Lu Xun','en','zh','en-zh','2026-11-21 15:32:11.320005','2026-11-21 15:32:11.320010');
CREATE TABLE rating_answer (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	rater_id INTEGER NOT NULL, 
	item INTEGER NOT NULL, 
	question VARCHAR(16) NOT NULL, 
	choice VARCHAR(16) NOT NULL, 
	moment DATETIME NOT NULL, 
	CONSTRAINT uq_rating_answer_rater_id_item_question UNIQUE (rater_id, item, question), 
	CONSTRAINT fk_rating_answer_rater_id_rating_rater FOREIGN KEY(rater_id) REFERENCES rating_rater (id) ON DELETE CASCADE
);
INSERT INTO "rating_answer" VALUES(1,1,0,'fluency','win','2026-11-21 15:32:11.424005');
CREATE TABLE rating_rater (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	round_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	token VARCHAR(64) NOT NULL, 
	created DATETIME NOT NULL, 
	CONSTRAINT uq_rating_rater_round_id_name UNIQUE (round_id, name), 
	CONSTRAINT fk_rating_rater_round_id_rating_round FOREIGN KEY(round_id) REFERENCES rating_round (id) ON DELETE CASCADE, 
	CONSTRAINT uq_rating_rater_token UNIQUE (token)
);
INSERT INTO "rating_rater" VALUES(1,1,'Ann','b410xBcvsL0LzBA40AWJeE6O52erCFiZ','2026-11-21 15:32:11.422006');
CREATE TABLE rating_round (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project_id INTEGER NOT NULL, 
	comparison_id INTEGER, 
	title TEXT NOT NULL, 
	one TEXT NOT NULL, 
	two TEXT NOT NULL, 
	source VARCHAR(32) NOT NULL, 
	target VARCHAR(32) NOT NULL, 
	seed INTEGER NOT NULL, 
	size INTEGER NOT NULL, 
	items JSON NOT NULL, 
	about JSON NOT NULL, 
	created DATETIME NOT NULL, 
	closed DATETIME, 
	CONSTRAINT fk_rating_round_project_id_project FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE, 
	CONSTRAINT fk_rating_round_comparison_id_comparison FOREIGN KEY(comparison_id) REFERENCES comparison (id) ON DELETE SET NULL
);
INSERT INTO "rating_round" VALUES(1,2,1,'Round','base','Lu Xun','en','zh',7,1,'[{"source": "I see.", "one": "\u6211\u660e\u767d\u4e86\u3002", "two": "\u6211\u61c2\u4e86\u3002"}]','{}','2026-11-21 15:32:11.414119',NULL);
CREATE TABLE schema_version (
	version INTEGER NOT NULL, 
	CONSTRAINT pk_schema_version PRIMARY KEY (version)
);
INSERT INTO "schema_version" VALUES(1);
CREATE TABLE worker (
	name VARCHAR(255) NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	job_id INTEGER, 
	started DATETIME NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	CONSTRAINT pk_worker PRIMARY KEY (name)
);
INSERT INTO "worker" VALUES('here:1:aa','here',1,NULL,'2026-11-21 15:32:11.428172','2026-11-21 15:32:11.428174');
CREATE INDEX ix_corpus_project_id ON corpus (project_id);
CREATE INDEX ix_job_project_id ON job (project_id);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE UNIQUE INDEX uq_job_running_project ON job (project_id) WHERE state = 'running';
CREATE INDEX ix_comparison_project_id ON comparison (project_id);
CREATE INDEX ix_phrase_set_corpus_id ON phrase_set (corpus_id);
CREATE INDEX ix_plugin_project_id ON plugin (project_id);
CREATE INDEX ix_plugin_job_id ON plugin (job_id);
CREATE INDEX ix_rating_round_project_id ON rating_round (project_id);
CREATE INDEX ix_comparison_line_done ON comparison_line (comparison_id, done, place);
CREATE INDEX ix_comparison_line_change ON comparison_line (comparison_id, change);
CREATE INDEX ix_comparison_line_difference ON comparison_line (comparison_id, difference);
CREATE INDEX ix_rating_rater_round_id ON rating_rater (round_id);
CREATE INDEX ix_rating_answer_rater_id ON rating_answer (rater_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('project',2);
INSERT INTO "sqlite_sequence" VALUES('corpus',1);
INSERT INTO "sqlite_sequence" VALUES('phrase_set',1);
INSERT INTO "sqlite_sequence" VALUES('job',3);
INSERT INTO "sqlite_sequence" VALUES('plugin',1);
INSERT INTO "sqlite_sequence" VALUES('comparison',2);
INSERT INTO "sqlite_sequence" VALUES('rating_round',1);
INSERT INTO "sqlite_sequence" VALUES('rating_rater',1);
INSERT INTO "sqlite_sequence" VALUES('rating_answer',1);
INSERT INTO "sqlite_sequence" VALUES('api_token',1);
COMMIT;
